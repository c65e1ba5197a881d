#!/bin/sh
# Generates the types of sdk/typescript from the OpenAPI document of the code. With --compare, only reports whether they
# are up to date.
set -eu
cd "$(dirname "$0")/.."
types=sdk/typescript/src/gen/schema.ts

# The generator has its own packages: it requires TypeScript 5, and the project has TypeScript 7.
if ! cmp -s sdk/typescript/package-lock.json sdk/typescript/node_modules/.installed-lock.json; then
  npm ci --prefix sdk/typescript --ignore-scripts --loglevel=error --no-audit --no-fund
  cp sdk/typescript/package-lock.json sdk/typescript/node_modules/.installed-lock.json
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
node tools/sdk-document.ts typescript "$work/document.json"
sdk/typescript/node_modules/.bin/openapi-typescript "$work/document.json" --default-non-nullable=false --empty-objects-unknown \
  --root-types --root-types-no-schema-prefix --output "$work/schema.ts" >"$work/log" 2>&1 ||
  { cat "$work/log" && exit 1; }

# `string & {}` keeps the names of archetypes in the completions of editors.
sed 's/\(\["ArchetypeName"\]\) | string;/\1 | (string \& {});/' "$work/schema.ts" >"$work/open.ts"
mv "$work/open.ts" "$work/schema.ts"

if [ "${1:-}" = --compare ]; then
  diff "$work/schema.ts" "$types"
  exit
fi
mkdir -p "$(dirname "$types")"
mv "$work/schema.ts" "$types"
