import { createWriteStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { App } from '../../app.js';
import { conflict } from '../../errors.js';
import { CHANGE_LOG } from '../changes/outbox-log.js';
import type { Database } from '../../platform/database/database.js';
import { inChunks } from '../../platform/database/in-chunks.js';
import { readOrCreateMasterKey } from '../../platform/secrets/master-key.js';
import { RESTORES } from '../../platform/database/restore-mark.js';
import { VERSION } from '../../package.js';
import { BACKUP_FORMAT, createArchiveWriter } from './backup-archive.js';
import { openGivenNames } from '../collections/given-names.js';
import { SERIES } from '../collections/indexes/insert-series.js';
import { readIndexes, readRaw } from './copy-collection.js';
import { makeWorkFolder, nameDraft, removeDrafts } from './drafts.js';
import { listFiles, localFilesDir } from './local-files.js';

export interface BackupReport {
  file: string;
  bytes: number;
  documents: number;
  files: number;
}

const PROGRESS_STEP = 500;
const FILE_CHUNK_BYTES = 48 * 1024;

/**
 * Writes everything stored into one file (mode 0600) while serving goes on: the documents as of one moment (embedded
 * engine) or collection by collection (MongoDB), then the uploaded files kept locally, and the master key when it was
 * generated. The file appears when it is whole.
 */
export async function backUp(
  app: App,
  path: string,
  options: { stop: AbortSignal; onProgress: (documents: number, files: number) => void },
): Promise<BackupReport> {
  await removeDrafts(path);
  const workDir = await makeWorkFolder();
  const draft = nameDraft(path);
  const counts = { documents: 0, files: 0 };
  let frozen: Database | null = null;
  try {
    frozen = await app.db.freeze(workDir);
    await requireWhole(app, frozen, options.stop);
    const lines = writeLines(app, frozen, counts, options);
    const output = createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(Readable.from(inChunks(lines)), createGzip(), output, { signal: options.stop });
    await rename(draft, path);
    return { file: path, bytes: (await stat(path)).size, ...counts };
  } finally {
    await frozen?.close();
    await rm(draft, { force: true });
    await rm(workDir, { recursive: true, force: true });
  }
}

/**
 * Batches that are hidden come first: of documents that are read later it is known then whether they stood at that
 * moment.
 */
function inOrder(names: string[]): string[] {
  const others = names.filter((name) => name !== RESTORES && name !== SERIES && name !== CHANGE_LOG).sort();
  return names.includes(SERIES) ? [SERIES, ...others] : others;
}

/**
 * Refuses a damaged store with 409 STORE_DAMAGED, so that it never becomes a backup that looks whole; MongoDB checks
 * its reads itself.
 */
async function requireWhole(app: App, frozen: Database, stop: AbortSignal): Promise<void> {
  const problems = (await frozen.verify?.({ signal: stop })) ?? [];
  if (problems.length === 0) return;
  throw conflict(
    'STORE_DAMAGED',
    `The store is damaged, so no backup was made: ${(await openGivenNames(app))(problems[0]!)} "bsvc doctor --deep" names everything.`,
  );
}

async function* writeLines(
  app: App,
  db: Database,
  counts: { documents: number; files: number },
  { onProgress }: { onProgress: (documents: number, files: number) => void },
): AsyncGenerator<string> {
  const archive = createArchiveWriter();
  yield archive.write({
    format: BACKUP_FORMAT,
    version: VERSION,
    createdAt: new Date(app.clock.now()).toISOString(),
    secretKey: app.config.secretKey ? null : readOrCreateMasterKey(app.config.dataDir),
  });
  for (const name of inOrder(await db.listNames())) {
    const store = db.collection(name);
    yield archive.write({ collection: name, indexes: await readIndexes(store) });
    for await (const raw of readRaw(store, {})) {
      yield archive.write({ document: raw.toString('base64') });
      if (++counts.documents % PROGRESS_STEP === 0) onProgress(counts.documents, counts.files);
    }
  }
  const root = localFilesDir(app.config);
  for await (const file of listFiles(root)) {
    // Files never change, but one may have been deleted since it was listed.
    const handle = await open(file).catch(() => null);
    if (!handle) continue;
    try {
      const { size } = await handle.stat();
      yield archive.write({ file: relative(root, file).split(sep).join('/'), size });
      for await (const chunk of handle.createReadStream({ highWaterMark: FILE_CHUNK_BYTES, autoClose: false })) {
        yield archive.write({ bytes: (chunk as Buffer).toString('base64') });
      }
    } finally {
      await handle.close();
    }
    onProgress(counts.documents, ++counts.files);
  }
  yield `${JSON.stringify({ end: { ...counts, sha256: archive.sha256() } })}\n`;
}
