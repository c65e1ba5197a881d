# Stand-in for the public image of LiveKit, from the server that tests build.
ARG BASE
FROM ${BASE} AS livekit
ARG PROGRAM
COPY ${PROGRAM} /usr/local/bin/livekit-server
ENTRYPOINT ["livekit-server"]
