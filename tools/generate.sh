#!/bin/sh
# npm run generate: makes src/gen from proto, whether it is out of date or not.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
step "generating code from proto" sh tools/generate-code.sh
