"""The logos of badges, from the npm packages in `tests/simple_icons`.

`make logos` writes them to `chalicelib/badges/logos.json`; the list of names is below.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from chalicelib.badges.logos import DATA

WANTED = """
ada c clojure cplusplus crystal css dart dotnet elixir elm erlang fortran fsharp gleam gnubash go
graphql haskell haxe html5 javascript json julia kotlin latex less lua markdown nim ocaml openjdk
perl php purescript python r ruby rust sass scala solidity swift toml typescript v webassembly
yaml zig

alpinedotjs angular antdesign apacheairflow apachecassandra apachekafka apachespark astro babel
biome blender bootstrap celery chartdotjs cypress d3 django dotenv electron esbuild eslint expo
express fastapi flask flutter gatsby godotengine htmx huggingface ionic jest jquery jupyter keras
langchain laravel lit mocha mui nestjs nextdotjs ngrx nodedotjs numpy nuxt ollama opencv pandas
plotly poetry preact prettier pydantic pytest pytorch qt react reactquery redux remix rollupdotjs
rubyonrails ruff scikitlearn scipy selenium solid spring springboot storybook streamlit svelte swc
symfony tailwindcss tauri tensorflow threedotjs unity unrealengine uv vite vitest vuedotjs vuetify
webpack

apache caddy clickhouse duckdb elasticsearch firebase grafana influxdb mariadb mongodb mysql neo4j
nginx opentelemetry postgresql prisma prometheus rabbitmq redis sentry snowflake sqlite supabase
traefikproxy

ansible appveyor argo bitbucket circleci codacy codeberg codeclimate codecov conventionalcommits
coveralls dependabot docker forgejo git gitea github githubactions gitlab helm istio jenkins
kubernetes precommit pulumi renovate semanticrelease snyk sonarqubecloud sourcehut teamcity
terraform travisci vagrant wireguard

amd cloudflare cloudflarepages cloudflareworkers digitalocean flydotio google googlecloud intel
netlify nvidia railway render vercel

alpinelinux android apple archlinux arduino debian espressif fedora firefox freebsd gentoo
googlechrome homeassistant ios linux linuxmint macos manjaro nixos opensuse raspberrypi redhat
ubuntu

androidstudio anthropic cursor eclipseide figma gimp gnuemacs googlecolab inkscape
intellijidea jetbrains neovim notion obsidian pycharm sublimetext vim webstorm xcode zedindustries

anaconda apachemaven appstore bun chocolatey cmake cocoapods condaforge deno fdroid flathub
flatpak googleplay gradle homebrew jsr npm nuget pnpm pypi rubygems snapcraft yarn

bitcoin bluesky buymeacoffee devdotto discord ethereum facebook githubsponsors gmail hashnode
instagram kaggle kofi leetcode liberapay mastodon matrix medium opencollective orcid patreon
paypal reddit rss signal spotify stackoverflow steam substack telegram threads tiktok twitch
whatsapp x youtube zulip

creativecommons docusaurus gnu hugo jekyll letsencrypt materialformkdocs mozilla openapiinitiative
opensourceinitiative postman readthedocs sphinx swagger vitepress wordpress
"""
"""The logos that READMEs use: languages, frameworks, databases, CI, clouds, systems, editors,
registries, social networks and documentation. Those with another licence are left out."""
LICENCES = {
    "CC0-1.0",
    "Unlicense",
    "MIT",
    "BSD-3-Clause",
    "Apache-2.0",
    "CC-BY-3.0",
    "CC-BY-4.0",
}
"""The licences that allow any use of a drawing, and demand no licence for what it is part of."""
OF_PACKAGE = "CC0-1.0"
"""The licence of an icon without one of its own."""
DECIMALS, FEWER_DECIMALS = 2, 1
LONG_PATH = 1_500
"""From this length on, a path has fewer decimals: a tenth of a 24th of a side is 0.06 px."""
PATH = re.compile(r'<path d="([^"]+)"/></svg>')

Icon: TypeAlias = Mapping[str, Any]


def build(packages: Path) -> dict[str, Any]:
    """Return the content of `logos.json`, from a folder with the installed packages."""
    icons = _read_icons(packages)
    licences = {name: _find_licence(icon) for name, icon in sorted(icons.items())}
    drawn = sorted(name for name in set(WANTED.split()) if licences[name] in LICENCES)
    paths = _shorten(packages, drawn)
    return {
        "logos": {name: [icons[name]["hex"].lower(), paths[name]] for name in drawn},
        "licences": {
            name: licence
            for name, licence in licences.items()
            if licence not in LICENCES or (name in paths and licence != OF_PACKAGE)
        },
    }


def _read_icons(packages: Path) -> dict[str, Icon]:
    data = packages / "node_modules" / "simple-icons" / "data" / "simple-icons.json"
    return {icon["slug"]: icon for icon in json.loads(data.read_text(encoding="utf-8"))}


def _find_licence(icon: Icon) -> str:
    licence: str = icon.get("license", {}).get("type", OF_PACKAGE)
    return licence


def _shorten(packages: Path, names: Collection[str]) -> dict[str, str]:
    """Return the path of each logo in a short form."""
    paths = _run_svgo(packages, names, DECIMALS)
    long = [name for name, path in paths.items() if len(path) > LONG_PATH]
    return paths | _run_svgo(packages, long, FEWER_DECIMALS)


def _run_svgo(packages: Path, names: Iterable[str], decimals: int) -> dict[str, str]:
    modules = packages / "node_modules"
    with TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.svg" for name in names}
        for file in files.values():
            shutil.copy(modules / "simple-icons" / "icons" / file.name, file)
        command = (modules / ".bin" / "svgo", "--quiet", "--folder", folder)
        config = ("--config", packages / "svgo.config.mjs")
        environment = {**os.environ, "DECIMALS": str(decimals)}
        subprocess.run([*command, *config], check=True, env=environment)  # noqa: S603  ours
        return {name: _read_path(file.read_text(encoding="utf-8")) for name, file in files.items()}


def _read_path(document: str) -> str:
    (path,) = PATH.findall(document)
    assert isinstance(path, str)
    return path


if __name__ == "__main__":
    written = json.dumps(build(Path(sys.argv[1])), indent=0, separators=(",", ":"))
    DATA.write_text(written + "\n", encoding="utf-8")
