import { request as httpRequest } from 'node:http';
import { EJSON, ObjectId } from 'bson';
import { type Clock, type Constants, ROUTE_LISTS } from '../../world/app.js';
import { setChanges } from '../../world/collections.js';
import { addHook, addSchedule, planCall } from '../../world/hooks.js';
import { drainJobs } from '../../world/jobs.js';
import {
  addWebhook,
  createKey,
  presentKey,
  revokeKey,
  rotateKey,
  setMailSettings,
  setSocialProvider,
  setTemplate,
  updateProject,
} from '../../world/projects.js';
import { disableUser, requireUser, signAccessToken } from '../../world/users.js';
import { buildCollection, buildProject, placeDocuments, type TestProject } from '../../helpers/build-project.js';
import { startMailProviderDouble, type MailProviderDouble } from '../../helpers/mail-provider-double.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { buildOperator } from '../../helpers/operator-client.js';
import { openStorageClient } from '../../helpers/storage-client.js';
import { openUserClient, PASSWORD } from '../../helpers/user-client.js';
import type { Pass } from './routes-table.js';

export const ADMIN_TOKEN = 'admin-token-of-the-attacked-service';
export const EVENT_SECRET = `whsec_${Buffer.from('the secret of the mail provider').toString('base64')}`;
/** Stands in every store of a project under attack; nobody else may ever see it. */
const CANARY = 'canary';

/** The service under attack, with a mail provider behind it. */
export interface Stage extends TestApp {
  provider: MailProviderDouble;
}

export async function openStage(
  settings: Record<string, string> = {},
  clock?: Clock,
  constants?: Partial<Constants>,
): Promise<Stage> {
  const provider = await startMailProviderDouble();
  const test = await openTestApp({
    clock,
    constants,
    settings: {
      BSVC_ADMIN_TOKEN: ADMIN_TOKEN,
      BSVC_BCRYPT_COST: '4',
      BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
      BSVC_MAIL_RATE: 'off',
      BSVC_MAIL_FROM: 'service@example.test',
      RESEND_API_KEY: 're_platform',
      RESEND_BASE_URL: provider.url,
      PROVIDER_WEBHOOK_SECRET: EVENT_SECRET,
      ...settings,
    },
  });
  return {
    ...test,
    provider,
    async close() {
      await test.close();
      await provider.close();
    },
  };
}

/** The callers of a project. */
export interface Credentials {
  revoked: string;
  rotated: string;
  user: { id: string; accessToken: string; refreshToken: string };
  /** The access token of an account that was disabled afterwards. */
  disabledToken: string;
  operator: string;
  viewer: string;
}

/** Somebody else: a project and a token of every sort, none of which is worth anything in another project. */
export interface Stranger extends TestProject, Credentials {}

export async function buildStranger(stage: Stage): Promise<Stranger> {
  const owner = await buildProject(stage.app);
  const credentials = await buildCredentials(stage, owner, 'stranger');
  return { ...owner, ...credentials };
}

/** A project with one of everything, and the names by which paths and bodies call it. */
export interface Estate extends TestProject, Credentials {
  names: Record<string, string>;
}

/** Somebody with a token of every sort, for a project that has nothing yet. */
async function buildCredentials(stage: Stage, owner: TestProject, name: string): Promise<Credentials> {
  const { app } = stage;
  const { project } = owner;
  const revoked = await createKey(app, project, 'secret');
  await revokeKey(app, project, revoked.key.id.toHexString());
  const client = openUserClient(stage, owner.publishable);
  const { body, headers } = await client.signUp({ name });
  const { user, accessToken } = body as { user: { _id: string }; accessToken: string };
  const disabled = (await client.signUp()).body as { user: { _id: string }; accessToken: string };
  await disableUser(app, project, await requireUser(app, project._id, disabled.user._id));
  return {
    revoked: revoked.value,
    rotated: await rotateAway(stage, owner),
    user: { id: user._id, accessToken, refreshToken: headers['x-refresh-token'] as string },
    disabledToken: disabled.accessToken,
    operator: (await buildOperator(stage, 'owner', [project])).token,
    viewer: (await buildOperator(stage, 'viewer', [project])).token,
  };
}

/** A publishable key that a rotation without grace has ended; the project goes on with the new one. */
async function rotateAway({ app }: Stage, owner: TestProject): Promise<string> {
  const rotated = owner.publishable;
  owner.publishable = (await rotateKey(app, owner.project, 'publishable', 0)).value;
  return rotated;
}

/**
 * What stands in a project's estate under a path's parameter, freshly made; everything readable in it holds the canary.
 */
async function furnish(stage: Stage, owner: TestProject, word: string): Promise<Record<string, string>> {
  const { app } = stage;
  const { project } = owner;
  await updateProject(app, project._id.toHexString(), { plan: 'pro', allowedDomains: ['*', `${word}.example.test`] });
  const collection = await buildCollection(app, project);
  // On a MongoDB changes are kept only where somebody asks for it.
  await setChanges(app, project._id, collection.name, { on: true });
  const unused = await buildCollection(app, project, { fields: [{ name: word, type: 'String' }] });
  const [document, trashed] = await placeDocuments(app, collection, [
    { text: word },
    { text: word, isDeleted: true, deletedAt: new Date() },
  ]);
  const [user, file, pending, template] = await Promise.all([
    openUserClient(stage, owner.publishable).signUp({ name: word }),
    openStorageClient(stage, owner.secret).upload(word, `${word}.txt`, 'text/plain'),
    openStorageClient(stage, owner.secret).request({ filename: 'a.txt', contentType: 'text/plain', size: 6 }),
    setTemplate(app, project, 'own', { subject: word, html: word, text: word }),
    setMailSettings(app, project, { providerApiKey: `re_${word}`, providerFromEmail: `${word}@example.test` }),
    setSocialProvider(app, project, {
      name: 'github',
      clientId: word,
      clientSecret: word,
      redirectUrls: ['https://app.example.test/'],
    }),
  ]);
  const url = `${stage.provider.url}/${word}`;
  await addHook(app, project, { event: 'posts.create', url });
  await addSchedule(app, project, { name: 'own', cron: '0 3 * * *', url });
  await planCall(app, project, { at: new Date(app.clock.now()).toISOString(), url, key: 'later', body: word });
  const { webhook, secret } = await addWebhook(app, project, {
    url,
    events: ['*'],
    description: word,
  });
  const { user: account } = user.body as { user: { _id: string; email: string } };
  const [session] = (user.headers['x-refresh-token'] as string).split('.');
  return {
    projectId: project._id.toHexString(),
    collectionName: collection.name,
    collection: collection.name,
    emptyCollection: unused.name,
    document: document!,
    trashed: trashed!,
    keyId: presentKey(project.keys[1]!, 0).id,
    user: account._id,
    email: account.email,
    password: PASSWORD,
    session: session!,
    refreshToken: user.headers['x-refresh-token'] as string,
    path: file.body.path,
    pendingPath: pending.body.filePath,
    signedPath: new URL(pending.body.signedUrl).pathname + new URL(pending.body.signedUrl).search,
    template: 'own',
    templateId: template._id.toHexString(),
    webhook: webhook.id.toHexString(),
    webhookSecret: secret!,
    name: 'own',
    event: 'posts.create',
    call: 'later',
    provider: 'github',
    guide: 'email',
    page: 'email.md',
    skill: 'SKILL.md',
    username: 'nobody',
  };
}

/** A project with one of everything and somebody with a token of every sort. */
export async function buildEstate(stage: Stage, word = CANARY): Promise<Estate> {
  const owner = await buildProject(stage.app);
  const credentials = await buildCredentials(stage, owner, word);
  const estate = { ...owner, ...credentials, names: await furnish(stage, owner, word) };
  await furnishByWork(stage, estate, word);
  return estate;
}

/** What takes a worker or the mail provider: a delivery, a mail that was sent, an audience with a contact, a draft. */
async function furnishByWork(stage: Stage, estate: Estate, word: string): Promise<void> {
  const { app } = stage;
  const call = asSecret(stage, estate);
  await call('POST', `/api/data/${estate.names.collectionName}`, { text: word });
  await call('POST', '/api/mail/send', { to: `${word}@example.test`, subject: word, text: word });
  await app.backgroundTasks.idle();
  await drainJobs(app);
  const delivery = await app.db
    .collection<{ _id: string; webhookId: ObjectId }>('webhook_deliveries')
    .findOne({ webhookId: new ObjectId(estate.names.webhook) });
  const mail = await app.db
    .collection<{ _id: ObjectId; projectId: ObjectId; providerEmailId: string }>('mail_logs')
    .findOne({ projectId: estate.project._id });
  const make = async (path: string, body: object): Promise<string> =>
    (JSON.parse((await call('POST', `/api/mail${path}`, body)).text) as { data: { id: string } }).data.id;
  const audience = await make('/audiences', { name: word });
  const contact = await make(`/audiences/${audience}/contacts`, { email: `${word}@example.test` });
  const broadcast = await make('/broadcasts', { audienceId: audience, subject: word, text: word });
  const made = {
    delivery: delivery!._id,
    deliveryId: delivery!._id,
    mail: mail!.providerEmailId,
    audience,
    contact,
    broadcast,
  };
  Object.assign(estate.names, made);
}

/** An access token for any user id, signed as the service signs. */
export function forgeToken({ app }: Stage, { project }: TestProject, userId: string): string {
  return signAccessToken(app, project, userId, 60_000);
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  /** Of an error's JSON body; empty otherwise. */
  code: string;
}

export interface Shot {
  method: string;
  /** Sent exactly as it stands: no client tidies it up. */
  path: string;
  headers?: Record<string, string | string[]>;
  /** A text or bytes are sent as they are, anything else as JSON. */
  body?: unknown;
}

/** One request, exactly as written. */
export function fire(stage: Pick<TestApp, 'url'>, { method, path, headers = {}, body }: Shot): Promise<Answer> {
  const { hostname, port } = new URL(stage.url);
  const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined;
  const payload = raw ? body : JSON.stringify(body);
  const all = {
    ...(payload !== undefined && {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(payload)),
    }),
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, method, headers: all, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        // A stream goes on: its first words are enough.
        if (response.headers['content-type'] === 'text/event-stream') response.destroy();
      });
      response.on('close', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode!, headers: response.headers, text, code: codeIn(text) });
      });
    });
    request.on('error', reject);
    request.end(payload);
  });
}

function codeIn(text: string): string {
  try {
    return (JSON.parse(text) as { code?: string }).code ?? '';
  } catch {
    return '';
  }
}

export type Caller = (method: string, path: string, body?: unknown, headers?: Shot['headers']) => Promise<Answer>;

export function callerWith(stage: Pick<TestApp, 'url'>, own: Record<string, string>): Caller {
  return (method, path, body, headers = {}) => fire(stage, { method, path, body, headers: { ...own, ...headers } });
}

export function asSecret(stage: Pick<TestApp, 'url'>, { secret }: Pick<TestProject, 'secret'>): Caller {
  return callerWith(stage, { 'x-api-key': secret });
}

/** `refused 403 SOMETHING`, or the plain status: one text to compare in tables. */
export function outcomeOf({ status, code }: Pick<Answer, 'status' | 'code'>): string {
  return code === '' ? String(status) : `${status} ${code}`;
}

/** Everything an answer says, headers included, that must not hold the canary or what is secret in the estate. */
export function leaksOf(answer: Answer, estate: Estate): string[] {
  const said = `${answer.text}\n${JSON.stringify(answer.headers)}`;
  const secrets = [
    estate.secret,
    estate.publishable,
    estate.user.accessToken,
    estate.user.refreshToken,
    estate.names.webhookSecret!,
    estate.names.refreshToken!,
    estate.names.email!,
  ];
  return [CANARY, ...secrets].filter((word) => said.includes(word));
}

/** Every mounted route, as `GET /api/data/:collectionName`. */
export function listRoutes(): string[] {
  return ROUTE_LISTS.flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${path}`));
}

/** What is stored of a project, as one text: the same before and after means that nothing of it was changed. */
export async function readEverything({ app }: Stage, { project }: TestProject): Promise<string> {
  const id = project._id.toHexString();
  const lines: string[] = [];
  for (const name of (await app.db.listNames()).sort()) {
    // Attempts on a project are noted there, under its id.
    if (name === 'audit_log') continue;
    for (const stored of await app.db.collection(name).find({}).sort({ _id: 1 }).toArray()) {
      // The use of a key is noted a moment after a request.
      const text = EJSON.stringify(stored).replaceAll(/,"lastUsedAt":\{[^}]*\}/g, '');
      if (name.includes(id) || text.includes(id)) lines.push(`${name} ${text}`);
    }
  }
  return lines.join('\n');
}

/** The headers of a caller of the project that has the pass. */
export function passFor(pass: Pass, own: Credentials & TestProject): Record<string, string> {
  const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  switch (pass) {
    case 'everybody':
    case 'a key in the query':
      return {};
    case 'a key':
    case 'the secret key':
    case 'the secret key to write':
      return { 'x-api-key': own.secret };
    case 'an end user':
      return { 'x-api-key': own.publishable, ...bearer(own.user.accessToken) };
    case 'an operator':
    case 'an operator who has signed in':
    case 'an owner':
      return bearer(own.operator);
    default:
      return bearer(ADMIN_TOKEN);
  }
}
