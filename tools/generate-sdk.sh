#!/bin/sh
# Generates the types of sdk/typescript from the OpenAPI document of the code, or with an argument into that file.
set -eu
cd "$(dirname "$0")/.."
output=${1:-sdk/typescript/src/gen/schema.ts}

# The generator has its own packages: it requires TypeScript 5, and the project has TypeScript 7.
if ! cmp -s sdk/typescript/package-lock.json sdk/typescript/node_modules/.installed-lock.json; then
  npm ci --prefix sdk/typescript --ignore-scripts --loglevel=error --no-audit --no-fund
  cp sdk/typescript/package-lock.json sdk/typescript/node_modules/.installed-lock.json
fi
document=$(mktemp)
trap 'rm -f "$document"' EXIT
trap 'exit 130' INT TERM HUP
node tools/sdk-document.ts "$document"
sdk/typescript/node_modules/.bin/openapi-typescript "$document" --default-non-nullable=false --empty-objects-unknown \
  --root-types --root-types-no-schema-prefix --output "$output"
