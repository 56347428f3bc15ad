import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { App } from '../../../src/app.js';
import { openEngine } from '../../../src/engine/index.js';
import { documentsName } from '../../../src/features/collections/collection.js';
import { requireCollection } from '../../../src/features/collections/collection-store.js';
import { fileStore, filesOf, objectOf, type FileRecord } from '../../../src/features/files/file.js';
import { mailLogStore, type MailLog } from '../../../src/features/mail/mail-log.js';
import { mailUsageStore } from '../../../src/features/mail/sending/mail-quota.js';
import { measureUsage } from '../../../src/features/management/project-details.js';
import { verifyBackup } from '../../../src/features/store-copies/restore-backup.js';
import { userStore } from '../../../src/features/users/user-store.js';
import { MIGRATIONS } from '../../../src/migrations/migrate.js';
import { jobStore } from '../../../src/platform/jobs/job.js';
import { drainJobs, SCHEDULES } from '../../../src/worker.js';
import type { TestProject } from '../build-project.js';
import { countUndelivered } from '../build-webhook.js';
import type { MailProviderDouble } from '../mail-provider-double.js';
import { listStoredFiles } from '../storage-client.js';
import type { ReceivedWebhook } from '../webhook-receiver.js';
import { IMPORTED, type CommandBooks } from './commands.js';
import { BATCH_SIZE, type DocumentBooks } from './document-clients.js';
import type { FileBooks } from './file-clients.js';
import { findLostDocuments } from './find-lost-documents.js';
import { groupBy } from './group-by.js';
import type { MailBooks } from './mail-clients.js';
import type { UserBook } from './user-clients.js';
import { withApp } from '../with-app.js';

export interface SoakBooks extends DocumentBooks {
  users: UserBook[];
  files: FileBooks;
  mails: MailBooks;
  commands: CommandBooks;
}

export interface SoakEnd {
  env: Record<string, string>;
  dataDir: string;
  owner: TestProject;
  books: SoakBooks;
  mail: MailProviderDouble;
  arrivals: () => ReceivedWebhook[];
}

type Stored = Record<string, unknown>;
type Found = { violations: string[]; compared: Record<string, number> };

const HOUR_MS = 3_600_000;
const MAX_FREE_BYTES = 32 * 1024 * 1024;
/** Longer than the longest pause of a retry. */
const ROUND_HOURS = 13;
const ROUNDS = 4;

/**
 * Lets all background work come to its end, with a clock that is set ahead further and further, and compares what is
 * stored with what was answered.
 */
export async function findLosses(end: SoakEnd): Promise<Found> {
  const found: Found = { violations: [], compared: {} };
  for (let round = 1; round <= ROUNDS; round++) await withApp(end.env, finishWork, round * ROUND_HOURS * HOUR_MS);
  await withApp(end.env, (app) => compareAll(app, end, found), ROUNDS * ROUND_HOURS * HOUR_MS);
  await compareStore(end, found);
  return found;
}

async function compareAll(app: App, end: SoakEnd, found: Found): Promise<void> {
  await compareDocuments(app, end, found);
  await compareUsers(app, end, found);
  await compareFiles(app, end, found);
  await compareMails(app, end, found);
  await compareWebhooks(app, end, found);
  await compareJobs(app, found);
  await compareCounts(app, end, found);
  const migrations = MIGRATIONS.map(({ id }) => id);
  for (const backup of end.books.commands.backups) await verifyBackup(app, backup, migrations);
}

async function finishWork(app: App): Promise<void> {
  for (const { job } of SCHEDULES) await app.jobs.enqueue(job, {});
  await drainJobs(app);
  await app.backgroundTasks.idle();
  await drainJobs(app);
}

async function readStored(app: App, { owner }: SoakEnd, name: string): Promise<Stored[]> {
  const collection = await requireCollection(app, owner.project._id, name);
  return app.db.collection<Stored>(documentsName(collection)).find({}).toArray() as Promise<Stored[]>;
}

async function compareDocuments(app: App, end: SoakEnd, { violations, compared }: Found): Promise<void> {
  const { books } = end;
  violations.push(...findLostDocuments(await readStored(app, end, 'notes'), books.documents));
  const batches = groupBy(await readStored(app, end, 'batches'), ({ batch }) => String(batch));
  for (const [batch, answered] of books.batches) {
    const size = batches.get(batch)?.filter(({ isDeleted }) => isDeleted === false).length ?? 0;
    if (size !== BATCH_SIZE && (answered || size > 0))
      violations.push(`${batch}: ${size} of ${BATCH_SIZE}, answered: ${answered}`);
  }
  const orders = groupBy(await readStored(app, end, 'orders'), ({ key }) => String(key));
  for (const [key, id] of books.orders) {
    const ids = (orders.get(key) ?? []).map(({ _id }) => String(_id));
    if (ids.length !== 1 || ids[0] !== id) violations.push(`${key}: stored as [${ids.join(' ')}], answered was ${id}`);
  }
  for (const [key, documents] of orders)
    if (documents.length > 1) violations.push(`${key} is stored ${documents.length} times`);
  const imports = groupBy(await readStored(app, end, 'imports'), ({ number }) => String(number));
  for (const number of books.commands.imports) {
    const size = imports.get(String(number))?.length ?? 0;
    if (size !== IMPORTED) violations.push(`import ${number}: ${size} of ${IMPORTED}`);
  }
  compared['documents'] = books.documents.length;
  compared['answered changes of documents'] = books.documents.reduce(
    (all, { acknowledged }) => all + acknowledged.length,
    0,
  );
  compared['unanswered changes of documents'] = books.documents.reduce((all, { unsure }) => all + unsure.length, 0);
  compared['batches'] = books.batches.size;
  compared['orders'] = books.orders.size;
  compared['imports'] = books.commands.imports.length;
}

async function compareUsers(app: App, { owner, books }: SoakEnd, { violations, compared }: Found): Promise<void> {
  const stored = (await userStore(app, owner.project._id).find({}).toArray()) as unknown as {
    _id: unknown;
    email: string;
  }[];
  const byEmail = groupBy(stored, ({ email }) => email);
  for (const [email, users] of byEmail) if (users.length > 1) violations.push(`${email} has ${users.length} accounts`);
  for (const { email, id } of books.users)
    if (id !== null && String(byEmail.get(email)?.[0]?._id) !== id) violations.push(`account ${email} is lost`);
  for (const email of books.commands.users) if (!byEmail.has(email)) violations.push(`account ${email} is lost`);
  compared['accounts'] = stored.length;
}

async function compareFiles(
  app: App,
  { owner, books, dataDir }: SoakEnd,
  { violations, compared }: Found,
): Promise<void> {
  const records = (await fileStore(app).find(filesOf(owner.project._id)).toArray()) as FileRecord[];
  const live = new Map(records.filter(({ state }) => state === 'confirmed').map((file) => [file.path, file]));
  for (const [path, hash] of books.files.confirmed) {
    if (!live.has(path)) violations.push(`file ${path} is lost`);
    const file = live.get(path);
    const bytes = file && (await readFile(join(dataDir, 'files', objectOf(file))).catch(() => null));
    if (bytes && createHash('sha256').update(bytes).digest('hex') !== hash)
      violations.push(`file ${path} has other bytes`);
  }
  for (const path of books.files.deleted) if (live.has(path)) violations.push(`deleted file ${path} is back`);
  for (const { path, state, settled } of records)
    if (state !== 'confirmed' && !settled) violations.push(`file ${path} is ${state} and not settled`);
  const stored = new Set((await listStoredFiles(dataDir)).map((path) => path.split('/files/')[1] ?? path));
  const objects = new Set([...live.values()].map(objectOf));
  for (const object of stored) if (!objects.has(object)) violations.push(`left-over file ${object}`);
  for (const object of objects) if (!stored.has(object)) violations.push(`the bytes of ${object} are lost`);
  const bytes = [...live.values()].reduce((all, { size }) => all + size!, 0);
  const { storage } = await measureUsage(app, owner.project);
  if (storage.bytes !== bytes) violations.push(`storage: ${storage.bytes} bytes charged, ${bytes} stored`);
  compared['files'] = live.size;
  compared['bytes charged'] = storage.bytes;
}

/**
 * What a refusal gives its slot back for; after any other failure nobody knows whether the mail left, and the slot
 * stays taken.
 */
const REFUNDED = /^(validation_error|rate_limit_exceeded)/;

async function compareMails(app: App, { owner, books, mail }: SoakEnd, { violations, compared }: Found): Promise<void> {
  const logs = (await mailLogStore(app).find({ projectId: owner.project._id }).toArray()) as MailLog[];
  const byId = new Map(logs.map((log) => [log._id.toHexString(), log]));
  const accepted = new Set(mail.accepted.map(({ id }) => id));
  for (const id of books.mails.queued) if (!byId.has(id)) violations.push(`mail ${id} is lost`);
  const given = new Set(logs.map(({ providerEmailId }) => providerEmailId));
  for (const id of books.mails.batched) if (!given.has(id)) violations.push(`mail ${id} of a batch is lost`);
  for (const { _id, status, reason, providerEmailId, to } of logs) {
    if (status !== 'sent' && status !== 'failed') violations.push(`mail ${String(_id)} is ${status}`);
    if (status === 'sent' && !accepted.has(providerEmailId!)) violations.push(`mail ${String(_id)} never left`);
    if (status === 'failed' && to[0] !== 'refused@example.test' && reason?.startsWith('validation_error'))
      violations.push(`mail ${String(_id)} was refused: ${reason}`);
  }
  const sent = logs.filter(({ status }) => status === 'sent');
  if (new Set(sent.map(({ providerEmailId }) => providerEmailId)).size !== sent.length)
    violations.push('a mail was sent for two logs');
  const usages = await mailUsageStore(app).find({ projectId: owner.project._id }).toArray();
  const used = usages.reduce((all, usage) => all + usage.used, 0);
  const open = usages.reduce((all, usage) => all + usage.open.length, 0);
  // Mails of the service itself, as confirmations of addresses are, take no slot.
  const own = logs.filter(({ templateUsed }) => templateUsed === null);
  const taken = own.filter(({ status, reason }) => status !== 'failed' || !REFUNDED.test(reason ?? '')).length;
  if (used !== taken) violations.push(`mail: ${used} slots used, ${taken} mails that count`);
  if (open > 0) violations.push(`mail: ${open} slots are still open`);
  compared['mails'] = logs.length;
  compared['mail slots'] = used;
  compared['mails accepted by the provider'] = accepted.size;
}

async function compareWebhooks(app: App, end: SoakEnd, { violations, compared }: Found): Promise<void> {
  const { books } = end;
  const received = end.arrivals();
  const firsts = new Map(received.map((request) => [request.event.id, request] as const).reverse());
  const byDocument = groupBy([...firsts.values()].reverse(), ({ event }) => event.documentId);
  const actionsOf = (id: string): string[] => (byDocument.get(id) ?? []).map(({ event }) => String(event.action));
  for (const { id, tag, acknowledged, unsure } of books.documents) {
    if (id === null) continue;
    const [arrived, known] = [actionsOf(id).join(' '), acknowledged.join(' ')];
    if (arrived !== known && arrived !== [...acknowledged, ...unsure].join(' '))
      violations.push(
        `webhooks of note ${tag}: [${arrived}], answered was [${known}], unanswered [${unsure.join(' ')}]`,
      );
  }
  for (const [key, id] of books.orders)
    if (actionsOf(id).join(' ') !== 'insert') violations.push(`webhooks of ${key}: [${actionsOf(id).join(' ')}]`);
  for (const { id, email } of books.users)
    if (id !== null && actionsOf(id)[0] !== 'insert')
      violations.push(`webhooks of ${email}: [${actionsOf(id).join(' ')}]`);
  const told = groupBy(
    [...firsts.values()].filter(({ event }) => event.collection === 'batches'),
    ({ event }) => String(event.data.batch),
  );
  for (const [batch, answered] of books.batches) {
    const size = told.get(batch)?.length ?? 0;
    if (size !== BATCH_SIZE && (answered || size > 0))
      violations.push(`webhooks of ${batch}: ${size}, answered: ${answered}`);
  }
  const waiting = await countUndelivered(app);
  if (waiting > 0) violations.push(`${waiting} deliveries did not succeed`);
  compared['webhook requests'] = received.length;
  compared['webhook events'] = firsts.size;
}

async function compareJobs(app: App, { violations, compared }: Found): Promise<void> {
  // A run of a schedule that was killed more often than it may be tried is followed by the next one.
  const lasting = { state: { $ne: 'done' }, name: { $nin: SCHEDULES.map(({ job }) => job.name) } };
  const jobs = await jobStore(app)
    .find(lasting as never)
    .toArray();
  for (const { name, state, error } of jobs) violations.push(`job ${name} is ${state}: ${error ?? ''}`);
  compared['jobs left'] = jobs.length;
}

/** What the store counts by its indexes is what is there. */
async function compareCounts(app: App, end: SoakEnd, { violations }: Found): Promise<void> {
  const usage = await measureUsage(app, end.owner.project);
  for (const { name, documents, trashed } of usage.collections) {
    if (name === 'users') continue;
    const stored = await readStored(app, end, name);
    const active = stored.filter(({ isDeleted }) => isDeleted === false).length;
    const inTrash = stored.filter(({ isDeleted }) => isDeleted === true).length;
    if (documents !== active || trashed !== inTrash)
      violations.push(`${name}: ${documents} and ${trashed} counted, ${active} and ${inTrash} there`);
  }
}

async function compareStore({ dataDir }: SoakEnd, { violations, compared }: Found): Promise<void> {
  const engine = openEngine({ dataDir });
  for (const problem of await engine.verify()) violations.push(`store: ${problem}`);
  const { fileBytes, freeBytes } = engine.stats();
  compared['bytes of the data file'] = fileBytes;
  compared['free bytes of the data file'] = freeBytes;
  // Readers that were killed may keep pages from being used again for some seconds, but not for the whole time.
  if (freeBytes > fileBytes / 2 + MAX_FREE_BYTES)
    violations.push(`store: ${freeBytes} of ${fileBytes} bytes are free: it grew with every write`);
  await engine.close();
  const known = new Set(['bsvc.mdb', 'bsvc.mdb-lock', 'files', 'incoming', 'reserve', 'secret.key', 'serving']);
  for (const name of await readdir(join(dataDir, 'serving')).catch(() => []))
    violations.push(`left over: the mark of process ${name}`);
  for (const name of await readdir(dataDir))
    if (!known.has(name)) violations.push(`left over in the data directory: ${name}`);
}
