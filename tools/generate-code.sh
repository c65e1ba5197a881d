#!/bin/sh
# Generates src/gen from proto, and the scripts of our pages from gateway/web, beside the old code and then takes its place, so that nobody sees half of it.
# With --compare it only says whether src/gen is what would be generated.
set -eu
cd "$(dirname "$0")/.."
mkdir -p src
work=$(mktemp -d src/gen.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Made before buf reads anything: what is edited meanwhile is newer, and generated again.
touch "$work/.stamp"
buf generate --output "$work"
# The image keeps the comments of the proto files: the API reference is made from them.
buf build proto --output "$work/src/gen/image.binpb"
for page in live livekit; do
  PAGE=$page vite build gateway/web --outDir "$PWD/$work/src/gen/web"
done

if [ "${1:-}" = --compare ]; then
  diff -r -x .stamp "$work/src/gen" src/gen
  exit
fi
mv "$work/.stamp" "$work/src/gen/.stamp"
rm -rf src/gen
mv "$work/src/gen" src/gen
