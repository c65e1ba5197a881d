#!/bin/sh
# npm run new -- endpoint|service|event ...: writes the stubs of an endpoint, a service or an event, and generates code.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
changed=$(node tools/new.ts "$@")
for file in $changed; do
  case $file in *.ts | *.json) biome check --write "$file" >/dev/null 2>&1 || biome check "$file" ;; esac
done
need_code
# shellcheck disable=SC2086
printf 'changed: %s\n' $changed
