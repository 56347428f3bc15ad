import type { Db } from 'mongodb';

/** The part that matters here of the answers to `hello`, `buildInfo` and `getParameter`. */
export interface ServerAnswers {
  hello: {
    maxWireVersion?: number;
    isWritablePrimary?: boolean;
    secondary?: boolean;
    arbiterOnly?: boolean;
    readOnly?: boolean;
    setName?: string;
    hosts?: readonly string[];
    arbiters?: readonly string[];
    /** `isdbgrid` from a router of a sharded cluster. */
    msg?: string;
    /** There behind a load balancer. */
    serviceId?: unknown;
  };
  build: {
    version?: string;
    modules?: readonly string[];
    /** Of MongoDB itself, routers included: what it was built with. */
    javascriptEngine?: unknown;
    allocator?: unknown;
    /** FerretDB's own version, and before 2.0 its features. */
    [ferretdb: `ferretdb${string}`]: unknown;
  };
  /** null if unknown: routers have none, and reading it needs a right. */
  compatibilityVersion: string | null;
}

export interface ServerJudgement {
  topology: 'standalone' | 'replica set' | 'sharded cluster' | 'engine';
  /** The kind of server, in a few words. */
  summary: string;
  /** Why bsvc cannot work with it and what to do; null when it can. */
  refusal: string | null;
  /** Shortcomings that do not stop bsvc from working. */
  warnings: string[];
}

/** The name under which the embedded engine's wire transport introduces itself. */
const ENGINE_MODULE = 'bsvc embedded engine';

/** The oldest version that is known to carry out all that is asked here. */
const MIN_WIRE_VERSION = 17;
const MIN_VERSION = 6;

/** The verdict on a server by its answers: fit or not, and advice to its operator. */
export function judgeServer({ hello, build, compatibilityVersion }: ServerAnswers): ServerJudgement {
  const version = build.version ?? 'of unknown version';
  const topology = findTopology(hello, build);
  const summary = summarise(topology, nameServer(build, version), hello);
  const judge = (refusal: string | null, warnings: string[] = []): ServerJudgement => ({
    topology,
    summary,
    refusal,
    warnings,
  });
  if ((hello.maxWireVersion ?? 0) < MIN_WIRE_VERSION) {
    return judge(
      `This is MongoDB ${version}; bsvc needs ${MIN_VERSION}.0 or newer. Upgrade it, or leave MONGODB_URI unset and use the embedded engine.`,
    );
  }
  if (compatibilityVersion !== null && majorOf(compatibilityVersion) < MIN_VERSION) {
    return judge(
      `MongoDB ${version} still works as version ${compatibilityVersion}, without the indexes that bsvc needs. Run db.adminCommand({ setFeatureCompatibilityVersion: "${majorOf(version)}.0" }) there; from 7.0 on it also wants confirm: true.`,
    );
  }
  if (hello.arbiterOnly) {
    return judge('MONGODB_URI leads to an arbiter, which holds no data: name the other members of its replica set.');
  }
  if (hello.isWritablePrimary !== true || hello.readOnly === true) {
    return judge(
      hello.secondary
        ? 'MONGODB_URI leads to a secondary, which takes no writes: name all members of the replica set, and leave out directConnection.'
        : 'MongoDB takes no writes just now: check that its replica set is initiated and has a primary, and that it was not started read-only.',
    );
  }
  if (topology === 'standalone') return judge(NO_REPLICA_SET);
  const warnings = listWarnings(topology, version, hello, compatibilityVersion);
  if (topology !== 'engine' && !isMongodbItself(build)) warnings.push(NOT_MONGODB);
  return judge(null, warnings);
}

const NO_REPLICA_SET =
  'MongoDB runs as a standalone, which has no transactions. Make it a replica set of one: start it with "mongod --replSet rs0", then run "mongosh --eval \'rs.initiate()\'" once; what it holds stays.';

const NOT_MONGODB =
  'This server speaks the protocol of MongoDB without being one. bsvc is made for MongoDB and depends on its transactions: try all that you need, and keep backups.';

/** MongoDB says what it was built with; servers that are compatible with it do not, or name themselves. */
function isMongodbItself(build: ServerAnswers['build']): boolean {
  return findFerretdb(build) === undefined && build.javascriptEngine !== undefined && build.allocator !== undefined;
}

function findFerretdb(build: ServerAnswers['build']): string | undefined {
  return Object.keys(build).find((name) => name.startsWith('ferretdb'));
}

/** The server's name, with the version that it says it is like. */
function nameServer(build: ServerAnswers['build'], version: string): string {
  if (isMongodbItself(build)) return `MongoDB ${version}`;
  return findFerretdb(build) === undefined
    ? `a server that is compatible with MongoDB ${version}`
    : `FerretDB, compatible with MongoDB ${version}`;
}

function listWarnings(
  topology: ServerJudgement['topology'],
  version: string,
  hello: ServerAnswers['hello'],
  compatibilityVersion: string | null,
): string[] {
  const warnings: string[] = [];
  if (topology === 'replica set' && (hello.arbiters?.length ?? 0) > 0 && (hello.hosts?.length ?? 0) < 3) {
    warnings.push(
      'The replica set has an arbiter and only two members with data: while one of them is down, no write can reach a majority. Replace the arbiter with a member that holds data.',
    );
  }
  if (compatibilityVersion !== null && majorOf(compatibilityVersion) < majorOf(version)) {
    warnings.push(
      `MongoDB ${version} still works as version ${compatibilityVersion}: when the upgrade has proved itself, set featureCompatibilityVersion to ${majorOf(version)}.0.`,
    );
  }
  return warnings;
}

function findTopology(hello: ServerAnswers['hello'], build: ServerAnswers['build']): ServerJudgement['topology'] {
  if (build.modules?.includes(ENGINE_MODULE)) return 'engine';
  if (hello.msg === 'isdbgrid' || hello.serviceId !== undefined) return 'sharded cluster';
  return hello.setName === undefined ? 'standalone' : 'replica set';
}

function summarise(topology: ServerJudgement['topology'], server: string, hello: ServerAnswers['hello']): string {
  if (topology === 'engine') return 'the embedded engine of another bsvc, by the wire protocol';
  if (topology !== 'replica set') return `${server}, ${topology}`;
  const members = hello.hosts?.length ?? 0;
  return `${server}, replica set ${hello.setName} with ${members} ${members === 1 ? 'member' : 'members'}`;
}

function majorOf(version: string): number {
  return Number.parseInt(version, 10) || 0;
}

/** Asks a server what it is, through its database `admin`. */
export async function askServer(admin: Db): Promise<ServerAnswers> {
  const [hello, build] = await Promise.all([
    admin.command({ hello: 1 }) as Promise<ServerAnswers['hello']>,
    admin.command({ buildInfo: 1 }) as Promise<ServerAnswers['build']>,
  ]);
  const answers = { hello, build, compatibilityVersion: null };
  const { topology, refusal } = judgeServer(answers);
  if (refusal || (topology !== 'standalone' && topology !== 'replica set')) return answers;
  try {
    const found = await admin.command({ getParameter: 1, featureCompatibilityVersion: 1 });
    const { version } = (found.featureCompatibilityVersion ?? {}) as { version?: string };
    return { ...answers, compatibilityVersion: version ?? null };
  } catch {
    // Few users may ask; the version of the server has to do then.
    return answers;
  }
}
