#!/bin/sh
# npm's `prepare` script: after `npm ci` or `npm install`, generates src/gen and the types of the SDK if they are missing
# or outdated, so that an editor finds all types. Does nothing without the generators (`npm ci --omit=dev`), without the
# sources, or with PREPARE=off. If code cannot be generated, prints the reason, and the packages stay installed.
cd "$(dirname "$0")/.."
[ "${PREPARE:-}" != off ] && [ -x node_modules/.bin/buf ] && [ -d proto ] || exit 0
. tools/setup.sh
(need_node && need_sdk) || exit 0
