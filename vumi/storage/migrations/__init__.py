"""The migrations of the file: numbered SQL scripts, which `vumi.storage.file_format` applies.

To change the format of the file:

1. Add `NNNN_what_it_does.sql` with the next number. Never change a script that was released,
   because files that it made would differ from new ones.
2. Write statements that work on a file of the version before, whatever rows it has. A new file runs
   all scripts too. Each script is one transaction, which sets `PRAGMA user_version` to its number,
   so it has no `BEGIN`, `COMMIT`, `PRAGMA` or `VACUUM`. End each statement at the end of a line.
3. Add a test to `tests/unit/vumi/storage/test_file_format.py`: rows of the version before, and the
   same rows after the migration.
4. Name it in `CHANGELOG.md`, under "Upgrade notes", with its time for a large file: visitors wait.
"""
