#!/bin/sh
# Makes the base of the images from Debian's packages, for tests without a container registry. Keeps an existing one.
set -eu
name=localhost/pilothouse-base:bookworm
podman image exists "$name" && exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
mmdebstrap --variant=minbase --include=ca-certificates bookworm "$work/base.tar"
podman import "$work/base.tar" "$name"
