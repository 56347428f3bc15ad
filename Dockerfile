# syntax=docker/dockerfile:1
# One image for `bsvc serve` (the default), `bsvc worker` and every other command, for amd64 and arm64:
#   docker build -t bsvc .
#   docker run -p 127.0.0.1:4000:4000 -v bsvc-data:/data bsvc
#   docker buildx build --platform linux/amd64,linux/arm64 -t bsvc .
ARG NODE=20-bookworm-slim

FROM node:${NODE} AS build
WORKDIR /app
# Packages first: they are installed anew only when they change.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json build.mjs ./
COPY bin bin
COPY src src
COPY cli cli
RUN npm run build && npm prune --omit=dev --no-audit --no-fund

FROM node:${NODE}
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE README.md ./
COPY bin bin
COPY templates templates
# The files are root's, the process is not: it can write to its data and nowhere else.
RUN install -d -o node -g node -m 700 /data && ln -s /app/bin/bsvc.js /usr/local/bin/bsvc
USER node
ENV NODE_ENV=production BSVC_HOST=0.0.0.0 BSVC_PORT=4000 BSVC_DATA_DIR=/data
VOLUME /data
EXPOSE 4000
# Alive, not ready: a database that is away for a moment is no reason to start the container anew.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.BSVC_PORT}/api/health/live`).then((reply) => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"]
# SIGTERM ends it in order: requests under way are finished.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "--", "/app/bin/bsvc.js"]
CMD ["serve"]
