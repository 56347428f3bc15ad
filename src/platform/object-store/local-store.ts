import { timingSafeEqual } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../time/clock.js';
import { findFullDisk } from '../database/outages.js';
import { makeDirectory, placeFile } from '../durable-files.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { ReplacedFileError } from './block-sums.js';
import { isObjectKey, requireObjectKey, type ObjectStore } from './object-store.js';
import type { Spool } from './spool.js';

/** Path of the service under which files of the local store are read (GET) and written (PUT with a signature). */
export const LOCAL_FILES_PATH = '/files';

export interface OpenFile {
  file: FileHandle;
  size: number;
}

/** The permission of a signed URL of the local store. */
export interface LocalGrant {
  contentType: string;
  size: number;
}

/** Files below one directory, `<dir>/<folder>/<name>`. */
export interface LocalStore extends ObjectStore {
  readonly kind: 'local';
  /**
   * The file, open for reading, or null when there is none. The caller closes it. Throws ReplacedFileError for a
   * symbolic link, also in the place of its directory.
   */
  openFile(key: string): Promise<OpenFile | null>;
  /**
   * The permission that the query of a signed URL holds for `key`, or null when it was not signed by us or has expired.
   */
  readGrant(key: string, query: URLSearchParams): LocalGrant | null;
  /** The milliseconds for which the query of a signed URL still reads `key`; null when it does not. */
  readLink(key: string, query: URLSearchParams): number | null;
}

interface LocalStoreOptions {
  dir: string;
  spool: Spool;
  secrets: Pick<SecretBox, 'mac' | 'macs'>;
  clock: Clock;
}

/** Opens the store; directories are made when first needed. `spool` must be on the same file system. */
export function openLocalStore({ dir, spool, secrets, clock }: LocalStoreOptions): LocalStore {
  const pathOf = (key: string): string => join(dir, requireObjectKey(key));

  return {
    kind: 'local',
    async put(key, body) {
      const path = pathOf(key);
      const spooled = await spool.receive(body);
      try {
        await makeDirectory(dirname(path));
        if (!(await isRealDirectory(dirname(path)))) throw new Error(`${dirname(path)} is not a directory`);
        await placeFile(spooled.path, path);
        spool.moved(spooled);
      } catch (error) {
        await spool.discard(spooled);
        throw findFullDisk(error) ?? error;
      }
      return spooled;
    },
    async findSize(key) {
      const opened = await openFile(key, pathOf(key));
      await opened?.file.close();
      return opened?.size ?? null;
    },
    async remove(key) {
      const path = pathOf(key);
      if (await isRealDirectory(dirname(path))) await rm(path, { force: true });
    },
    signPutUrl(key, { contentType, size, expiresInMs }, serviceUrl) {
      const expires = Math.floor((clock.now() + expiresInMs) / 1000);
      const query = new URLSearchParams({ expires: String(expires), size: String(size), type: contentType });
      query.set('signature', secrets.mac(SIGNING, signedText(requireObjectKey(key), query)));
      return Promise.resolve(`${serviceUrl}${LOCAL_FILES_PATH}/${key}?${query.toString()}`);
    },
    signGetUrl(key, expiresInMs, serviceUrl, mark) {
      const expires = String(Math.ceil((clock.now() + expiresInMs) / 1000));
      const query = new URLSearchParams({ expires, ...(mark !== undefined && { mark }) });
      query.set('signature', secrets.mac(LINKING, linkText(requireObjectKey(key), query)));
      return Promise.resolve(`${serviceUrl}${LOCAL_FILES_PATH}/${key}?${query.toString()}`);
    },
    publicUrl: (key, serviceUrl) => `${serviceUrl}${LOCAL_FILES_PATH}/${key}`,
    openFile: (key) => (isObjectKey(key) ? openFile(key, pathOf(key)) : Promise.resolve(null)),
    readGrant(key, query) {
      const text = signedText(key, query);
      const given = query.get('signature') ?? '';
      if (!secrets.macs(SIGNING, text).some((mac) => isEqual(mac, given))) return null;
      if (Number(query.get('expires')) * 1000 <= clock.now()) return null;
      return { contentType: query.get('type')!, size: Number(query.get('size')) };
    },
    readLink(key, query) {
      const given = query.get('signature') ?? '';
      if (!secrets.macs(LINKING, linkText(key, query)).some((mac) => isEqual(mac, given))) return null;
      const leftMs = Number(query.get('expires')) * 1000 - clock.now();
      return leftMs > 0 ? leftMs : null;
    },
    close: () => undefined,
  };
}

const SIGNING = 'local-put-url';
const LINKING = 'local-get-url';

function linkText(key: string, query: URLSearchParams): string {
  return JSON.stringify(['GET', key, query.get('expires'), query.get('mark')]);
}

/** JSON, so that no two grants share a text. */
function signedText(key: string, query: URLSearchParams): string {
  return JSON.stringify(['PUT', key, query.get('expires'), query.get('size'), query.get('type')]);
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

async function openFile(key: string, path: string): Promise<OpenFile | null> {
  let file: FileHandle;
  try {
    if (!(await lstat(dirname(path))).isDirectory()) throw new ReplacedFileError(key);
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw code === 'ELOOP' || code === 'ENXIO' ? new ReplacedFileError(key) : error;
  }
  const found = await file.stat();
  if (found.isFile()) return { file, size: found.size };
  await file.close();
  throw new ReplacedFileError(key);
}

async function isRealDirectory(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
