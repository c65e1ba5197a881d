#!/bin/sh
# npm run accept-contract: writes docs/openapi.digest and docs/schema.sql, and records the last commit as the proto
# baseline of `npm run check`.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
node tools/check-openapi.ts --write
node tools/write-schema.ts
git rev-parse HEAD >proto/released-at
git diff --quiet HEAD -- proto/pilothouse ||
  printf 'pilothouse: proto has changes that are not committed; they are not part of the accepted contract.\n' >&2
