#!/bin/sh
# npm's `prepare` script: generates src/gen after `npm ci` or `npm install` if it is missing or old, so that an editor finds
# all types. Does nothing without the generators (`npm ci --omit=dev`) or with PREPARE=off.
cd "$(dirname "$0")/.."
[ "${PREPARE:-}" != off ] && [ -x node_modules/.bin/buf ] || exit 0
. tools/setup.sh
need_node
need_code
