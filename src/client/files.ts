import type { Account } from './auth/account.js';

/** A stored file. */
export interface StoredFile {
  path: string;
  /** Public URL; null if the bucket has none. */
  url: string | null;
  provider: 'internal' | 'external';
  warning?: string;
  /** Of a file that is read by links alone. */
  visibility?: 'attached' | 'private';
}

/** A file of a document. */
export interface AttachedFile {
  path: string;
  name: string;
  contentType: string;
  size: number | null;
  createdAt: string;
  /** Valid for ten minutes; null if its storage no longer exists. */
  url: string | null;
}

export interface UploadOptions {
  /** The document that the file is to belong to: read and changed by those who may read and change that. */
  attach?: { collection: string; id: string };
  /** With the secret key: read by links that it asks for. */
  visibility?: 'private';
  /** The file’s own name unless said. */
  filename?: string;
  /** The file’s own type unless said. */
  contentType?: string;
  /** Reports how many bytes are on their way; where a platform does not say, at the beginning and the end. */
  onProgress?: (sent: number, total: number) => void;
  signal?: AbortSignal;
}

/** Files of the project. Every method throws an `ApiError`. */
export interface Files {
  /** Sends a file to an address that the service signs for it, and confirms it. */
  upload(file: Blob & { name?: string }, options?: UploadOptions): Promise<StoredFile>;
  remove(path: string): Promise<void>;
  /** The files of a document that may be read: the first hundred by their paths. */
  of(document: { collection: string; id: string }): Promise<AttachedFile[]>;
  /** Addresses of up to 100 files for ten minutes, in the order of the paths; null for those that may not be read. */
  links(paths: readonly string[]): Promise<(string | null)[]>;
}

const ATTEMPTS = 4;

export function openFiles(account: Pick<Account<unknown>, 'connection' | 'refuse' | 'tools'>): Files {
  const { connection, refuse, tools } = account;
  const { backOff, sleep, tellListener } = tools;
  return {
    async upload(file, { filename = file.name ?? 'file', contentType, attach, visibility, onProgress, signal } = {}) {
      const type = contentType ?? (file.type || 'application/octet-stream');
      const { size } = file;
      const wanted = { filename, contentType: type, size, attach, visibility };
      const grant = await connection.send<{ signedUrl: string; filePath: string }>({
        method: 'POST',
        path: '/storage/upload-request',
        body: wanted,
        signal,
      });
      const progress = (sent: number): void => onProgress && tellListener((bytes) => onProgress(bytes, size), sent);
      progress(0);
      for (let tried = 0; ; tried++) {
        const status = await put(tools, grant.signedUrl, file, type, progress, signal);
        if (status >= 200 && status < 300) break;
        if (tried + 1 >= ATTEMPTS || (status > 0 && status < 500)) {
          const code = status ? `HTTP_${status}` : 'NETWORK';
          throw refuse('The file was not taken by the storage', { status, code });
        }
        await sleep(backOff(tried), signal);
      }
      progress(size);
      const { filePath } = grant;
      const call = { method: 'POST', path: '/storage/upload-confirm', body: { filePath, size }, signal } as const;
      const { path, url, provider, warning, visibility: seen } = await connection.send<StoredFile>(call);
      return { path, url, provider, ...(warning !== undefined && { warning }), ...(seen && { visibility: seen }) };
    },
    async links(paths) {
      const call = { method: 'POST', path: '/storage/links', body: { paths } } as const;
      const { data } = await connection.send<{ data: { links: { url: string | null }[] } }>(call);
      return data.links.map(({ url }) => url);
    },
    async of({ collection, id }) {
      const path = `/storage/attached/${encodeURIComponent(collection)}/${encodeURIComponent(id)}`;
      return (await connection.send<{ data: { items: AttachedFile[] } }>({ method: 'GET', path })).data.items;
    },
    async remove(path) {
      await connection.send({ method: 'DELETE', path: '/storage/file', body: { path }, repeat: 'no' });
    },
  };
}

/** The status of the reply; 0 when there was none. */
async function put(
  { platform, reasonOf }: Account<unknown>['tools'],
  url: string,
  file: Blob,
  type: string,
  onSent: (sent: number) => void,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { XMLHttpRequest } = platform;
  if (!XMLHttpRequest) {
    const options = { method: 'PUT', headers: { 'content-type': type }, body: file, ...(signal && { signal }) };
    return fetch(url, options).then(
      ({ status }) => status,
      (error: unknown) => {
        if (signal?.aborted) throw error;
        return 0;
      },
    );
  }
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', url);
    request.setRequestHeader('content-type', type);
    request.upload.onprogress = ({ loaded }) => onSent(loaded);
    request.onload = () => resolve(request.status);
    request.onerror = () => resolve(0);
    request.onabort = () => reject(reasonOf(signal!));
    signal?.addEventListener('abort', () => request.abort(), { once: true });
    if (signal?.aborted) reject(reasonOf(signal));
    else request.send(file);
  });
}
