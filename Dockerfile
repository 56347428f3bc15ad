# syntax=docker/dockerfile:1
# One image for `bsvc serve` (the default), `bsvc worker` and every other command, for amd64 and arm64:
#   docker build -t bsvc .
#   docker run -p 127.0.0.1:4000:4000 -v bsvc-data:/data bsvc
#   docker buildx build --platform linux/amd64,linux/arm64 -t bsvc .
ARG NODE=24-bookworm-slim

FROM node:${NODE} AS build
WORKDIR /app
# Packages first: they are installed anew only when they change.
COPY package.json package-lock.json .npmrc ./
COPY src/engine/package.json src/engine/
RUN npm ci
COPY tsconfig.json build.mjs LICENSE README.md ./
COPY bin bin
COPY src src
COPY cli cli
COPY templates templates
RUN npm run package

FROM node:${NODE}
# What everybody installs. The files are root's, the process is not: it can write to its data and nowhere else.
RUN --mount=type=bind,from=build,source=/app/dist,target=/packed \
  npm install --global --no-audit --no-fund /packed/bsvc-*.tgz && npm cache clean --force && \
  install -d -o node -g node -m 700 /data
USER node
ENV NODE_ENV=production BSVC_HOST=0.0.0.0 BSVC_DATA_DIR=/data
VOLUME /data
EXPOSE 4000
# Alive, not ready: a database that is away for a moment is no reason to start the container anew.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.BSVC_PORT || process.env.PORT || 4000}/api/health/live`).then((reply) => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"]
# SIGTERM ends it in order: requests under way are finished.
STOPSIGNAL SIGTERM
ENTRYPOINT ["bsvc"]
CMD ["serve"]
