import { openApp, type App } from '../../../src/app.js';
import { loadConfig } from '../../../src/config/config.js';
import { addCollection } from '../../../src/features/collections/add-collection.js';
import { documentsName } from '../../../src/features/collections/collection.js';
import { defaultUsersCollection } from '../../../src/features/collections/users-collection.js';
import { changeProject } from '../../../src/features/declaration/plan-projects.js';
import {
  identityStore,
  isLinkOf,
  isPasskeyOf,
  passkeyStore,
} from '../../../src/features/users/accounts/sign-in-methods.js';
import { findPendingEmail, ONE_TIME_CODES, type CodePurpose } from '../../../src/features/users/codes/one-time-code.js';
import { COUNTERS } from '../../../src/features/users/counters.js';
import { sessionStore } from '../../../src/features/users/sessions/session.js';
import { setSocialProvider } from '../../../src/features/users/social/social-provider.js';
import { isAnonymous, type User } from '../../../src/features/users/user.js';
import { userStore } from '../../../src/features/users/user-store.js';
import { migrate } from '../../../src/migrations/migrate.js';
import { listOutbox } from '../../../src/platform/mail-provider/outbox.js';
import { jobStore } from '../../../src/platform/jobs/job.js';
import { openLogger } from '../../../src/platform/observe/logger.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject, type TestProject } from '../build-project.js';
import { openOidcIssuer, type OidcIssuer } from '../oidc-issuer.js';
import type { Random } from '../random.js';
import { openTempDir } from '../temp-dir.js';
import { startServers, type Servers } from './servers.js';

export const SITE = { rpId: 'shop.example', origin: 'https://app.shop.example' };
export const HOME = 'https://app.shop.example/in';
/** Nothing listens there: who follows a redirect to it asks one of the processes instead. */
const PUBLIC_URL = 'http://127.0.0.1:9';
const PROCESSES = 3;
const FRESH_MS = 11 * 60_000;
const STEPS_PASSED = 3;

/** What opens an account, as stored. */
export interface Account {
  id: string;
  user: User;
  email: string | null;
  isProven: boolean;
  isDisabled: boolean;
  passkeys: string[];
  identities: string[];
  hasFactor: boolean;
}

export interface Letter {
  purpose: CodePurpose;
  email: string;
  code: string;
}

/** A project with everything switched on, served by several processes over one store, and its mailboxes. */
export interface AccountWorld {
  app: App;
  project: TestProject;
  servers: Servers;
  issuer: OidcIssuer;
  /** Runs works at the issuer one after the other. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  random: Random;
  /** The codes that were mailed, the newest last. */
  letters: Letter[];
  /** The tokens of invitations that came, by address. */
  invites: { email: string; token: string }[];
  /** Has everything mailed that waits, and puts it into the mailboxes. */
  deliver(): Promise<void>;
  snapshot(): Promise<Map<string, Account>>;
  /** Time passes for the pauses between mails and codes of an app. */
  passMinutes(): Promise<void>;
  /** No proof is fresh any more. */
  passTenMinutes(): Promise<void>;
  close(): Promise<void>;
}

export async function openAccountWorld(random: Random): Promise<AccountWorld> {
  const dir = await openTempDir();
  const env = {
    BSVC_DATA_DIR: dir.path,
    BSVC_DURABILITY: 'relaxed',
    BSVC_LOG_LEVEL: 'error',
    BSVC_BCRYPT_COST: '4',
    BSVC_ANONYMOUS_RATE_LIMIT: 'off',
    BSVC_PUBLIC_URL: PUBLIC_URL,
    BSVC_TRUST_PROXY: '1',
  };
  const { config } = loadConfig([{ source: 'test', values: env }]);
  const app = await openApp(config, openLogger({ level: 'error', format: 'json' }));
  await migrate(app.db);
  const made = await buildProject(app);
  const issuer = await openOidcIssuer(`${PUBLIC_URL}/api/userAuth/social/acme/callback`);
  const signIn = {
    codeLogin: 'signup' as const,
    mfa: 'optional' as const,
    mfaResetDelay: '0s',
    anonymous: true,
    redirects: [HOME],
    passkeys: { rpId: SITE.rpId, origins: [SITE.origin] },
  };
  const project: TestProject = { ...made, project: await changeProject(app, made.project, { signIn }) };
  await setSocialProvider(app, project.project, {
    ...{ name: 'acme', issuer: issuer.url, clientId: issuer.clientId, clientSecret: issuer.clientSecret },
    ...{ appClientIds: [issuer.appClientId], redirectUrls: [HOME], mayBePrivate: true },
  });
  const rls = { mode: 'private' as const, ownerField: 'userId' };
  const text = { name: 'text', type: 'String' as const };
  await addCollection(app, project.project, { name: 'notes', fields: [text], rls });
  await addCollection(app, project.project, { name: 'members', mode: 'flexible', rls });
  const servers = await startServers(env, PROCESSES, random);
  const { _id: projectId } = project.project;
  const users = app.db.collection<User>(documentsName(defaultUsersCollection(projectId)));
  const codes = app.db.collection<{ _id: string; encryptedEmail?: string; sentAt: Date; dayTries?: number }>(
    ONE_TIME_CODES,
  );
  const known = new Set<string>();
  let turn: Promise<unknown> = Promise.resolve();

  const world: AccountWorld = {
    ...{ app, project, servers, issuer, random, letters: [], invites: [] },
    inTurn(work) {
      const next = turn.then(work);
      turn = next.catch(() => undefined);
      return next;
    },
    async deliver() {
      const isDue = { state: 'queued' as const, runAt: { $lte: new Date() } };
      if ((await jobStore(app).countDocuments(isDue)) === 0) return;
      const waiting = await codes.find({ encryptedEmail: { $exists: true } }).toArray();
      const written = await Promise.all(waiting.map(({ _id }) => findPendingEmail(app, _id)));
      await drainJobs(app);
      for (const { id, to, text: words = '' } of await listOutbox(app, { limit: 30 })) {
        if (known.has(id)) continue;
        known.add(id);
        const email = to[0]!;
        const token = /#invite=([\w-]+)/.exec(words)?.[1];
        if (token !== undefined) world.invites.push({ email, token });
        const letter = written.find((each) => each?.email === email && words.includes(each.code));
        if (letter) world.letters.push(letter);
      }
    },
    async snapshot() {
      const [all, links, passkeys] = await Promise.all([
        userStore(app, projectId).find({}).toArray(),
        identityStore(app).find({ projectId }).toArray(),
        passkeyStore(app).find({ projectId }).toArray(),
      ]);
      return new Map(
        all.map((user) => {
          const of = ({ userId }: { userId: User['_id'] }): boolean => userId.equals(user._id);
          const own = passkeys.filter((each) => of(each) && isPasskeyOf(each, user)).map(({ _id }) => _id);
          const id = user._id.toHexString();
          const account: Account = {
            ...{ id, user, email: user.email ?? null, isProven: user.emailVerified },
            isDisabled: Boolean(user._bsvc.disabledAt),
            passkeys: own,
            identities: links.filter((each) => of(each) && isLinkOf(each, user)).map(({ _id }) => _id),
            hasFactor: Boolean(user._bsvc.totp) || own.length > 0,
          };
          return [id, account];
        }),
      );
    },
    async passMinutes() {
      await app.db.collection(COUNTERS).deleteMany({});
      await codes.updateMany({}, { $set: { sentAt: new Date(0), dayTries: 0 } });
      await users.updateMany(
        { '_bsvc.totp': { $ne: null } },
        { $inc: { '_bsvc.totp.lastStep': -STEPS_PASSED as never } },
      );
    },
    async passTenMinutes() {
      for (const { _id, authAt, createdAt, mfaAt, userId } of await sessionStore(app).find({ projectId }).toArray()) {
        const owner = await userStore(app, projectId).findOne({ _id: userId });
        if (owner && isAnonymous(owner)) continue;
        const earlier = (at: Date): Date => new Date(at.getTime() - FRESH_MS);
        const set = { authAt: earlier(authAt ?? createdAt), ...(mfaAt && { mfaAt: earlier(mfaAt) }) };
        await sessionStore(app).updateOne({ _id }, { $set: set });
      }
    },
    async close() {
      await servers.stop();
      await issuer.close();
      await app.close();
      await dir.remove();
    },
  };
  return world;
}
