import { join } from 'node:path';
import { migrate } from '../../../src/migrations/migrate.js';
import { signAccessToken } from '../../../src/features/access/sign-access-token.js';
import type { NewCollection } from '../../../src/features/collections/add-collection.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { updateProject } from '../../../src/features/projects/update-project.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { startService, type RunningService } from '../../helpers/run-binary.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { withApp } from '../../helpers/with-app.js';

/** A service with one process whose collection `items` has a log. */
export interface FeedService {
  secret: string;
  publishable: string;
  /** Of each of the users that were asked for. */
  tokens: readonly string[];
  env: Record<string, string>;
  start(): Promise<RunningService>;
}

/** What is followed, and by whom. */
interface Followed {
  rls?: NewCollection['rls'];
  /** Of `items`, with the fields that they name; beside it stands `members`, which has `board` and `user`. */
  rules?: NewCollection['rules'];
  fields?: NewCollection['fields'];
  userIds?: readonly string[];
}

const TOKEN_MS = 3_600_000;

/** Runs `work` with a service of its own, for so many streams. */
export async function withFeedService<T>(
  streams: number,
  work: (service: FeedService) => Promise<T>,
  { rls, rules, fields = [], userIds = [] }: Followed = {},
): Promise<T> {
  const dir = await openTempDir();
  const env = {
    BSVC_DATA_DIR: join(dir.path, 'data'),
    BSVC_SECRET_KEY: 'a-master-key-for-benches-0123456789abcdef',
    BSVC_LOG_LEVEL: 'error',
    ...(process.env.NODE_OPTIONS !== undefined && { NODE_OPTIONS: process.env.NODE_OPTIONS }),
  };
  const argv = ['serve', '--port', '0', '--processes', '1', '--no-worker'];
  const constants = {
    streams: Math.max(streams, 10_000),
    streamsPerAddress: streams,
    connectionsPerAddress: 2 * streams,
  };
  const started: RunningService[] = [];
  try {
    const { secret, publishable, tokens } = await withApp(env, async (app) => {
      await migrate(app.db);
      const owner = await buildProject(app);
      await updateProject(app, owner.project._id.toHexString(), { plan: 'pro' });
      const text = (name: string) => ({ name, type: 'String' as const });
      const members = { name: 'members', fields: ['board', 'user'].map(text), rules: 'server-only' as const };
      if (rules) await buildCollection(app, owner.project, members);
      const access = { ...(rls && { rls }), ...(rules && { rules }) };
      await buildCollection(app, owner.project, { name: 'items', mode: 'flexible', fields, ...access });
      await setChanges(app, owner.project._id, 'items', { on: true });
      return { ...owner, tokens: userIds.map((id) => signAccessToken(app, owner.project, id, TOKEN_MS)) };
    });
    return await work({
      secret,
      publishable,
      tokens,
      env,
      async start() {
        const service = await startService(argv, env, { constants });
        started.push(service);
        return service;
      },
    });
  } finally {
    for (const service of started) await service.stop('SIGTERM');
    await dir.remove();
  }
}
