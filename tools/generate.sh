#!/bin/sh
# npm run generate: generates src/gen from proto, even if it is up to date.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
step "generating code" sh tools/generate-code.sh
step "generating the types of the SDK" sh tools/generate-sdk.sh
