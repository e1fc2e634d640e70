"""The width of a text, computed without a font, from which the widths of a badge's halves follow.

It is exact for the characters of Verdana, as shields.io measures them. It is close for scripts that
each system draws in another font: there `textLength` makes the renderer use this width.

Advances are in hundredths of a pixel at 11 px. Those of Latin, Greek and Cyrillic letters are
measured from the lengths that badge-maker 6.0 gives texts of 1,000 of each; those of Hebrew,
Arabic, Thai and Devanagari from DejaVu Sans and Noto Sans.
"""
# ruff: noqa: RUF001  letters of many scripts look alike

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from enum import Enum
from functools import cache
from itertools import pairwise
from operator import itemgetter

PER_PIXEL = 1100
"""An advance, times the size, divided by this, is in pixels."""
EM = 1100
HANGUL = 1012
"""The advance of a syllable, narrower than a square in Noto, Apple's and Microsoft's fonts."""
EMOJI = 1375
"""The advance of an emoji: 1.25 em in Noto and in Apple's font."""
VIRAMA, STEM = "\u094d", 220
"""A Devanagari consonant before a virama loses the width of its stem."""
INVISIBLE_CATEGORIES = {"Mn", "Me", "Cc", "Cf", "Cs"}
"""General categories without an advance: combining marks, controls, joiners."""

EMOJI_SEQUENCE = (
    "[\U0001f1e6-\U0001f1ff]{2}"  # a flag is two letters
    "|(?:[\U0001f000-\U0001faff]|.(?=[\ufe0f\U0001f3fb-\U0001f3ff]))"
    "[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
    "(?:\u200d.[\ufe0f\U0001f3fb-\U0001f3ff]*)*"
)
"""Matches one emoji. Source: Unicode UTS #51, "ED-17. emoji sequence"."""
LETTERS = (
    " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`{|}~¡¢£¤¥¦§¨©ª«¬®¯°±²"
    "³´¶·¸¹º»¼½¾¿ÆÐ×ØÞ÷ĐĦĸŁŊŒŦĽΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΆΈΉΊΌΎΏЂЄЅІЈЉЊЋЏАБВГДЕЖЗИКЛМНОПРСТУФХЦ"
    "ЧШЩЪЫЬЭЮЯҐҒҖҚҢҮҰҲҶҺӘӨӀ‐–—―‘’‚“”„†‡•…‰′″‹›€₴₸₹₺₽₿№™←↑→↓↔−≈≠≤≥∞√■□▲△▶▼◀●○★☆♥abcdefghijklmn"
    "opqrstuvwxyzßæðøþđħıłŋœŧďľαβγδεζηθικλμνξοπρςστυφχψωабвгдежзиклмнопрстуфхцчшщъыьэюяђєѕіјљ"
    "њћџґғҗқңүұҳҷһәө"
)
"""Letters without a capital form come first, because a text in capitals needs only those."""
OTHER_LETTERS = (
    "אבגדהוזחטיךכלםמןנסעףפץצקרשתกขคฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะาำ฿เแโใไๅๆ๏๐๑๒๓"
    "๔๕๖๗๘๙अआइईउऊऋएऐऑओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलळवशषसह\u093e\u093f\u0940\u0949\u094b\u094c"
    "ॐ।०१२३४५६७८९\u2002\u2003"
)
"""Hebrew, Thai, Devanagari, and two spaces, which are the same in every face."""
OTHERS = """
715 633 432 598 704 315 372 723 705 285 595 574 600 741 737 331 429 711 670 693 674 588 632
735 598 791 738 660 602 675 658 591 585 664 605 612 997 1000 663 663 602 689 993 1000 678
700 662 670 598 674 664 665 713 717 764 750 663 675 653 537 662 628 663 541 691 704 629 646
735 631 616 571 372 447 447 642 324 625 339 318 334 447 654 654 627 599 674 615 593 594 572
792 621 554 840 1125 540 540 603 841 938 608 608 1125 1125 1125 838 900 619 650 712 697 771
816 832 816 554 643 635 619 795 627 706 572 676 610 625 848 628 773 658 638 450 746 836 612
748 636 744 584 285 285 285 285 285 285 992 417 606 606 606 606 606 606 606 606 606 606 550
1100
"""
"""The advances of `OTHER_LETTERS`."""
ARABIC_LETTERS = "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژکگیہےںٹڈڑھ"
"""Arabic letters, with those of Persian and Urdu."""
ARABIC = """
485 312 312 533 313 858 313 1115 545 1115 1115 710 710 710 557 557 503 503 1378 1378 1406
1406 967 967 592 592 1152 886 960 806 652 807 545 533 858 858 1115 739 503 1011 1011 858 598
622 807 1115 557 503 708
"""
"""The advances of `ARABIC_LETTERS` at the end of a word."""
ARABIC_JOINED = """
485 304 304 528 306 328 306 328 537 344 344 685 685 685 544 544 478 478 925 925 981 981 826
826 578 558 530 530 536 329 610 328 569 528 402 344 344 685 478 536 536 344 437 675 610 336
544 478 569
"""
"""The advances of `ARABIC_LETTERS` before another letter."""
BLOCKS = """
0000 680 0530 730 0590 580 0600 600 0900 570 0980 520 0a00 540 0a80 500 0b00 640 0b80 900
0c00 700 0c80 600 0d00 820 0d80 900 0e00 650 0e80 690 0f00 590 1000 660 10a0 670 1160 0 1200 710
13a0 900 1400 700 1780 590 1800 580 1900 680 2000 600 20a0 700 2190 1000 2c00 680
"""
"""The first character of each block, in hex, and the usual advance in it, without another rule."""


class Face(Enum):
    """A font of a badge, with its advances of `LETTERS`."""

    VERDANA = """
387 433 505 900 699 1184 799 295 500 500 699 900 400 500 400 500 699 699 699 699 699 699 699
699 699 699 500 500 900 900 900 600 1100 752 754 768 848 696 632 853 827 463 500 762 612 927
823 866 663 866 765 752 678 805 752 1088 754 677 754 500 500 500 900 699 699 698 500 698 900
433 699 699 699 699 500 699 699 1100 600 709 900 1100 699 596 900 596 596 699 699 400 699
596 600 709 1100 1100 1100 600 1083 853 900 866 666 900 853 827 651 618 823 1177 678 612 752
754 623 773 696 754 827 866 463 762 754 927 823 714 866 827 663 740 678 677 901 754 958 900
752 826 957 594 969 829 998 872 771 752 463 500 1230 1213 900 827 752 754 754 623 820 696
1070 677 826 762 808 927 827 866 827 663 768 678 677 901 754 837 783 1133 1149 862 1012 749
771 1138 777 623 623 1070 762 827 677 677 754 715 783 830 866 366 636 699 1100 1100 295 295
295 505 505 505 699 699 600 900 1674 397 613 500 500 699 752 622 660 612 622 722 1289 1074
1100 550 1100 550 1100 900 900 900 900 900 1100 900 664 664 1089 1100 968 1089 1100 664 664
1100 1100 653 661 685 573 685 655 387 685 696 302 379 651 302 1070 696 668 685 685 469 573
433 696 651 900 651 651 578 682 1051 673 668 685 685 696 302 313 696 1080 433 712 325 685
682 651 669 564 503 696 686 302 651 651 704 651 553 668 701 688 559 693 546 694 869 649 904
895 661 676 654 518 684 655 878 577 704 651 683 766 701 668 701 685 588 546 651 925 651 709
666 964 976 705 874 628 602 923 660 696 602 573 302 379 1005 1005 696 701 518 518 878 651
701 651 651 651 553 696 655 668
"""
    VERDANA_BOLD = """
376 442 646 954 782 1399 948 365 597 597 782 954 397 528 397 758 782 782 782 782 782 782 782
782 782 782 442 442 954 954 954 679 1060 854 838 796 913 751 715 892 921 601 610 848 701
1043 932 935 806 935 860 781 750 893 840 1241 840 811 761 597 758 597 954 782 782 782 597
782 954 442 782 782 782 782 597 782 782 1060 658 935 954 1060 782 646 954 658 658 782 782
397 782 658 658 935 1300 1300 1300 679 1203 913 954 935 809 954 913 921 738 706 932 1249 750
701 854 838 701 887 751 761 921 935 601 848 854 1043 932 787 935 921 806 752 750 811 1047
840 1074 928 877 933 1101 776 1065 1033 1067 1002 816 781 601 610 1344 1335 1030 921 854 834
838 701 925 751 1226 778 931 848 930 1043 921 935 921 806 796 750 811 1047 840 935 866 1280
1295 998 1169 834 816 1314 874 701 701 1226 848 921 811 811 840 807 866 886 935 428 703 782
1100 1100 365 365 365 646 646 646 782 782 782 1154 1955 388 678 597 597 782 781 622 660 612
622 725 1423 1060 1100 550 1100 550 1100 954 954 954 954 954 1165 954 664 664 1089 1100 968
1089 1100 664 664 1100 1100 653
"""
    """Those of the capitals alone, the first part of `LETTERS`."""
    HELVETICA_BOLD = """
306 306 509 612 612 1100 753 306 326 326 448 660 306 448 306 408 612 612 612 612 612 612 612
612 612 612 306 306 660 660 660 612 880 753 774 815 815 713 652 835 815 324 612 794 652 998
815 856 734 856 794 714 672 815 693 1038 734 734 713 366 408 366 660 550 285 366 245 366 660
306 612 612 612 612 245 612 285 880 378 488 660 880 285 440 660 431 431 285 682 306 285 431
404 488 981 978 978 612 1079 815 660 856 734 660 815 815 621 652 815 1202 672 652 753 774
628 749 713 713 815 856 324 794 731 998 815 685 856 828 734 713 672 734 896 734 925 850 794
928 1031 540 1021 1016 1022 884 810 714 324 612 1238 1235 884 805 753 772 774 631 849 713
1167 712 819 794 817 998 815 856 805 734 815 672 712 1015 734 827 748 1145 1167 895 1022 745
812 1125 797 631 690 1190 817 837 734 734 757 769 742 823 856 324 448 550 1100 1100 306 306
306 509 509 509 612 612 385 1100 1262 366 671 265 265 612 701 612 608 612 612 722 1173 1100
1100 550 1100 550 1100 660 660 660 660 660 905 621 664 664 1089 1100 968 1089 1100 685 664
1100 1100 653 631 672 631 672 631 366 672 652 284 306 631 284 997 652 672 672 672 428 591
387 652 572 895 591 571 571 672 998 672 672 672 683 663 284 284 652 1019 387 672 427 680 647
559 651 566 521 652 632 300 624 606 652 583 511 672 733 657 602 658 549 629 829 591 799 836
631 668 639 498 686 631 893 596 660 631 659 812 652 672 641 672 631 552 571 942 591 663 631
901 917 711 856 603 634 918 636 674 634 591 284 306 987 980 674 641 498 544 915 645 671 571
571 608 650 652 631 672
"""


def width(text: str, face: Face, size: float) -> float:
    """Return the width in pixels of a text at a size in pixels."""
    return sum(advances(text, face)) * size / PER_PIXEL


def advances(text: str, face: Face) -> list[int]:
    """Return the advance of each emoji and of each other visible character, in no order."""
    letters, emoji = _remove_emoji(unicodedata.normalize("NFC", text))
    table = _read_advances(face)
    found = (_find_advance(char, following, table) for char, following in pairwise(letters + " "))
    return [EMOJI] * emoji + [advance for advance in found if advance]


def joins(text: str) -> bool:
    """Return whether letters of the text join, so that spacing would separate them."""
    return any(
        "\u0600" <= char <= "\u109f" or "\u1780" <= char <= "\u18af" or "\ufb50" <= char <= "\ufeff"
        for char in text
    )


def _remove_emoji(text: str) -> tuple[str, int]:
    """Return a text without emoji and combining marks, and the number of emoji."""
    if text.isascii():
        return text, 0
    rest, emoji = re.subn(EMOJI_SEQUENCE, "", text)
    kept = (char for char in rest if char == VIRAMA or unicodedata.category(char) != "Mn")
    return "".join(kept), emoji


def _find_advance(char: str, following: str, table: Mapping[str, int]) -> int:
    """Return the advance of a character, which may depend on the one that follows."""
    if following in ARABIC_LETTERS and char in _read_joined_advances():
        return _read_joined_advances()[char]
    advance = table.get(char)
    if advance is None:
        advance = _compute_advance(char, table)
    return max(0, advance - STEM) if following == VIRAMA else advance


def _compute_advance(char: str, table: Mapping[str, int]) -> int:
    """Compute the advance of a character without an entry, from its class or decomposition."""
    if unicodedata.category(char) in INVISIBLE_CATEGORIES:
        return 0
    if "\uac00" <= char <= "\ud7a3":
        return HANGUL
    squares = unicodedata.east_asian_width(char)
    if squares in "WF":
        return EMOJI if "\u2300" <= char < "\u2c00" else EM
    if squares == "H":
        return EM // 2
    parts = unicodedata.normalize("NFKD", char)
    if parts != char:
        return sum(_find_advance(part, " ", table) for part in parts)
    blocks = _read_blocks()
    return blocks[bisect_right(blocks, ord(char), key=itemgetter(0)) - 1][1]


@cache
def _read_advances(face: Face) -> dict[str, int]:
    others = zip(OTHER_LETTERS, map(int, OTHERS.split()), strict=True)
    arabic = zip(ARABIC_LETTERS, map(int, ARABIC.split()), strict=True)
    # The list of a face that draws only capitals is shorter than the letters.
    own = zip(LETTERS, map(int, face.value.split()), strict=False)
    return dict([*others, *arabic, *own])


@cache
def _read_joined_advances() -> dict[str, int]:
    return dict(zip(ARABIC_LETTERS, map(int, ARABIC_JOINED.split()), strict=True))


@cache
def _read_blocks() -> list[tuple[int, int]]:
    words = BLOCKS.split()
    return [
        (int(first, 16), int(usual)) for first, usual in zip(words[::2], words[1::2], strict=True)
    ]
