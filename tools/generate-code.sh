#!/bin/sh
# Generates src/gen from proto, the scripts of the service's pages from gateway/web, and the scripts for pages of
# sessions from workers/injected. Replaces the old code at the end, so that readers never see partial code. With
# --compare, only reports whether src/gen is up to date.
set -eu
cd "$(dirname "$0")/.."
mkdir -p src
work=$(mktemp -d src/gen.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Created before buf reads files, so that files edited during the run are newer than the stamp.
touch "$work/.stamp"
buf generate --output "$work"
# The image keeps the comments of the proto files for the API reference.
buf build proto --output "$work/src/gen/image.binpb"
for page in live livekit; do
  PAGE=$page vite build gateway/web --outDir "$PWD/$work/src/gen/web"
done
node tools/bundle-injected.ts "$work/src/gen/injected"

if [ "${1:-}" = --compare ]; then
  diff -r -x .stamp "$work/src/gen" src/gen
  exit
fi
mv "$work/.stamp" "$work/src/gen/.stamp"
rm -rf src/gen
mv "$work/src/gen" src/gen
