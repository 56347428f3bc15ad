import { resolve } from 'node:path';
import type { App } from '../../src/app.js';
import { createApi } from '../../src/api.js';
import type { Config } from '../../src/config/config.js';
import { removeStaleFiles, requireStrongSecrets, withWatchdog, waitForStop } from '../serve/run-service.js';
import type { CreatedProject } from '../../src/features/projects/create-project.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { startSeries } from '../../src/features/series/series.js';
import { offerStatus } from '../../src/features/series/status.js';
import { admission } from '../../src/http/admission/admission.js';
import { type ConnectionBounds, connectionRoom } from '../../src/http/bound-connections.js';
import { startServer } from '../../src/http/server.js';
import { clearStaleSocket, unixSocketOf } from '../../src/http/unix-socket.js';
import { markServing } from '../../src/platform/database/serving-mark.js';
import { watchSnapshots } from '../../src/platform/database/watch-snapshots.js';
import { createWorker } from '../../src/worker.js';
import { defineCommand, flag, setting } from '../shell/command.js';
import { serviceAddress } from '../shell/service-address.js';
import type { Context } from '../shell/context.js';
import { createFirstProject, presentFirstProject } from '../serve/create-first-project.js';
import { createDemo, makeDemoLink, type Demo } from '../serve/create-demo.js';
import { isShare, startProcesses, notifyReady } from '../serve/serve-processes.js';
import type { TextStyle } from '../view/output.js';

export default defineCommand({
  details:
    'On SIGTERM or Ctrl-C, it accepts no new requests and finishes those in progress. Log lines go to standard error.',
  examples: [
    'bsvc serve',
    'bsvc serve --demo',
    'bsvc serve --public ./dist --spa',
    'bsvc serve --host 0.0.0.0 --port 8080 --data-dir /var/lib/bsvc',
  ],
  service: true,
  parameters: {
    host: setting('--host <host>', 'BSVC_HOST', 'address to listen on (default: 127.0.0.1)'),
    port: setting('--port <port>', 'BSVC_PORT', 'port to listen on, 0 for any free one (default: 4000)'),
    processes: setting('--processes <n>', 'BSVC_PROCESSES', 'processes that share the port (default: 1)'),
    publicDir: setting('--public <dir>', 'BSVC_PUBLIC_DIR', 'serve the files of a front end at /'),
    spa: setting('--spa', 'BSVC_PUBLIC_SPA', 'with --public: serve index.html for paths without a file'),
    noWorker: flag('--no-worker', 'leave background work to "bsvc worker"'),
    dev: flag('--dev', 'restart own code when its files change, and print its output to standard error'),
    migrate: flag('--migrate', 'run pending migrations first'),
    demo: flag('--demo', 'on an empty database: create project "demo" with posts and keys; generous rate limits', {
      implies: { BSVC_RATE_LIMIT: '5000/15m', BSVC_AUTH_RATE_LIMIT: '500/15m' },
    }),
  },
  async run(context, input) {
    requireStrongSecrets(context.settings().config);
    await withWatchdog(context, () => (isShare() ? serveShare(context, input.noWorker) : serve(context, input)));
  },
});

const TWO_SERVICES =
  'Another "bsvc serve" has this data directory too: each of them counts rate limits for itself, so that clients have the sum. Use one "bsvc serve --processes N" instead.';

/** One of the processes of `serve --processes`. */
async function serveShare(context: Context, noWorker: boolean): Promise<void> {
  const app = await context.app('service');
  const server = await listen(app, context.settings().config, noWorker);
  notifyReady(server.url);
  await waitForStop(context, app.db);
  await server.stop();
}

interface ServeInput {
  dev: boolean;
  noWorker: boolean;
  migrate: boolean;
  demo: boolean;
}

const STARTED = 'bsvc is listening';

async function serve(context: Context, input: ServeInput): Promise<void> {
  const { config } = context.settings();
  const app = await context.app(input.migrate ? 'migrating service' : 'service');
  const reportListener = (error: unknown): void =>
    app.log.error({ err: error }, 'a command by the wire protocol failed');
  const listener = config.engineListen ? await app.db.listen(config.engineListen, reportListener) : null;
  if (listener) app.log.info({ uri: listener }, 'the embedded engine answers the wire protocol of MongoDB');
  await clearStaleSocket(config.host);
  if (input.dev) app.ownCode.develop((line) => void process.stderr.write(`own code: ${line}\n`));
  const mark = await markServing(app.db, config.dataDir);
  const demo = input.demo ? await createDemo(app) : null;
  const endWatch = watchSnapshots(app);
  const empty = (await listProjects(app)).length === 0;
  const first = empty ? await createFirstProject(context, app) : null;
  const server =
    config.processes > 1 ? await startProcesses(config.processes, app) : await listen(app, config, input.noWorker);
  // Without a port, report only that.
  if (mark.others.length > 0) app.log.warn({ processes: mark.others }, TWO_SERVICES);
  const isSocket = unixSocketOf(config.host) !== null;
  const url = serviceAddress(isSocket ? config : { ...config, port: Number(new URL(server.url).port || 80) });
  await mark.tell(url);
  const isDemoRate = config.rateLimit?.count === 5000 && config.rateLimit.windowMs === 15 * 60_000;
  const start: Start = {
    url,
    listensOn: isSocket ? server.url : url,
    dataDir: config.mongodbUri ? null : resolve(config.dataDir),
    console: config.console,
    link: demo?.link ?? (input.demo ? await makeDemoLink(app) : null),
    demo,
    first,
    empty,
    demoWanted: input.demo,
    isDemoRate,
  };
  const started = { url: server.url, pid: process.pid, ...(demo && { demo }) };
  // What collects logs reads standard output as well, and takes one JSON value a line.
  const startLine = (): string => JSON.stringify({ level: 30, time: Date.now(), ...started, msg: STARTED });
  await context.out.print({
    json: started,
    quiet: server.url,
    text: (view) => (config.logFormat === 'json' ? startLine() : presentStart(view, start)),
  });
  await waitForStop(context, app.db);
  endWatch();
  await server.stop();
  await mark.remove();
}

/** Behind a proxy all connections are the proxy's. */
function connectionBounds(app: App): ConnectionBounds {
  const { trustProxy, connectionsPerAddress } = app.config;
  const ofAddress = trustProxy > 0 ? null : connectionsPerAddress;
  const ofAll = connectionRoom();
  const { report } = admission(app);
  return {
    ofAddress,
    ofAll,
    onRejection(scope) {
      const limit = (scope === 'address' ? ofAddress : ofAll) ?? 0;
      report({ stage: 'connected', unit: 'connections', scope, limit });
    },
  };
}

/** The API, and unless `noWorker` the background work, in this process. */
async function listen(app: App, config: Config, noWorker: boolean): Promise<{ url: string; stop(): Promise<void> }> {
  await removeStaleFiles(app);
  const timeouts = {
    headersMs: config.headersTimeoutMs,
    requestMs: config.requestTimeoutMs,
    silenceMs: config.silenceTimeoutMs,
    stallMs: config.stallTimeoutMs,
  };
  const server = await startServer(createApi(app), config.host, config.port, timeouts, connectionBounds(app));
  app.ownCode.serveAt(server.url);
  const worker = noWorker ? null : createWorker(app);
  offerStatus(app);
  const series = startSeries(app);
  return {
    url: server.url,
    async stop() {
      app.readiness.end();
      series.stop();
      const stopServing = (): Promise<void> =>
        server.stop(config.shutdownGraceMs, {
          drainMs: config.drainMs,
          untilNobodyListens: () => app.processGroup?.waitForAll() ?? Promise.resolve(),
        });
      await Promise.all([stopServing(), worker?.stop()]);
    },
  };
}

interface Start {
  url: string;
  /** The address, or the socket to which a proxy passes what comes to the address. */
  listensOn: string;
  /** Null for data in a MongoDB. */
  dataDir: string | null;
  console: boolean;
  /** Signs in at the console. */
  link: string | null;
  /** What was made for this start. */
  demo: Demo | null;
  /** What a person has asked for. */
  first: CreatedProject | null;
  empty: boolean;
  demoWanted: boolean;
  isDemoRate: boolean;
}

function presentStart(view: TextStyle, start: Start): string {
  const { url, listensOn, dataDir, console, link, demo, first, empty, demoWanted, isDemoRate } = start;
  const lines = [`bsvc is listening on ${view.paint.bold(listensOn)}`, `Documentation: ${url}/api/docs`];
  if (console && link) {
    lines.push(
      `Console: ${url}/console/#/enter/${link}`,
      '  This address signs you in once, within five minutes; "bsvc console" makes another.',
    );
  } else if (console) {
    lines.push(`Console: ${url}/console ("bsvc operator add", then "bsvc console")`);
  }
  if (dataDir) lines.push(`Data: ${dataDir} (in another directory: export BSVC_DATA_DIR='${dataDir}')`);
  if (demo) {
    lines.push(
      '',
      `Project ${demo.project.name} was made with the collection posts and ten documents in it. posts is public: every key reads it, the secret key writes.`,
      `  publishable key  ${demo.keys.publishable}`,
      `  secret key       ${demo.keys.secret}`,
      'The keys are shown this once. Try, in another terminal:',
      '',
      `  curl -w '\\n' -H 'x-api-key: ${demo.keys.publishable}' '${url}/api/data/posts?limit=3'`,
      '',
      ...(isDemoRate ? ['With --demo one address may send 5000 requests in 15 minutes, without it 100.'] : []),
    );
  } else if (first) {
    lines.push(...presentFirstProject(first, url));
  } else if (empty) {
    lines.push(
      '',
      'There is no project yet. In another terminal, with the same data directory:',
      '  bsvc project create shop',
      '  bsvc collection add posts --project shop --field title:String!',
    );
  } else if (demoWanted) {
    lines.push(
      'There are projects already, so no demo was made. "bsvc project list" shows them; "bsvc key create" makes a further key.',
    );
  }
  return lines.join('\n');
}
