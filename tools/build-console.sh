#!/bin/sh
# Builds the console into dist/console. Replaces the old files at the end, so that gateways never read partial ones.
set -eu
cd "$(dirname "$0")/.."
mkdir -p dist
work=$(mktemp -d dist/console.XXXXXX)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Created before Vite reads files, so that files edited during the build are newer than the stamp.
touch "$work/.stamp"
vite build console --outDir "$PWD/$work"
rm -rf dist/console
mv "$work" dist/console
