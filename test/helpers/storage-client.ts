import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestApp } from './open-test-app.js';

export interface Reply<T = Record<string, unknown>> {
  status: number;
  headers: Headers;
  body: T;
}

export interface FileReply {
  message: string;
  path: string;
  url: string | null;
  provider: string;
  warning?: string;
  code?: string;
}

/** Calls of the storage API with one key, and further headers on each. */
export interface StorageClient {
  /** Multipart upload of `bytes`, in the field `file` unless another is named. */
  upload(bytes: Uint8Array | string, name?: string, type?: string, field?: string): Promise<Reply<FileReply>>;
  request(body: object): Promise<Reply<{ signedUrl: string; filePath: string; code?: string; message?: string }>>;
  confirm(body: object): Promise<Reply<FileReply>>;
  remove(path: unknown): Promise<Reply>;
  removeAll(): Promise<Reply<{ data: { deleted: number } }>>;
}

export function openStorageClient(
  test: Pick<TestApp, 'url'>,
  key: string,
  headers: Record<string, string> = {},
): StorageClient {
  const send = async <T>(method: string, path: string, body?: FormData | object): Promise<Reply<T>> => {
    const isForm = body instanceof FormData;
    const reply = await fetch(`${test.url}/api/storage/${path}`, {
      method,
      headers: { 'x-api-key': key, ...headers, ...(body && !isForm && { 'content-type': 'application/json' }) },
      body: isForm ? body : body && JSON.stringify(body),
    });
    return { status: reply.status, headers: reply.headers, body: (await reply.json()) as T };
  };
  return {
    upload(bytes, name = 'photo.png', type = 'image/png', field = 'file') {
      const form = new FormData();
      form.set(field, new File([bytes], name, { type }));
      return send('POST', 'upload', form);
    },
    request: (body) => send('POST', 'upload-request', body),
    confirm: (body) => send('POST', 'upload-confirm', body),
    remove: (path) => send('DELETE', 'file', { path }),
    removeAll: () => send('DELETE', 'all'),
  };
}

/** PUT of bytes to a signed address. */
export async function putSigned(url: string, bytes: Uint8Array | string, type: string): Promise<Response> {
  return fetch(url, { method: 'PUT', headers: { 'content-type': type }, body: bytes });
}

/** Every file below the data directory's storage, finished or still arriving. */
export async function listStoredFiles(dataDir: string): Promise<string[]> {
  const found: string[] = [];
  for (const dir of ['files', 'incoming']) {
    const entries = await readdir(join(dataDir, dir), { recursive: true, withFileTypes: true }).catch(() => []);
    found.push(...entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)));
  }
  return found;
}
