import { openAuth, type Auth, type SessionOptions } from './auth/auth.js';
import type { Batch, BatchResult } from './batch.js';
import { openCollection, type CoreCollection } from './collection.js';
import { openConnection, type Connection, type ConnectionOptions, type ConnectionStatus } from './connection.js';
import type { Files } from './files.js';
import { findStorage } from './platform.js';
import type { Mailer } from './mail.js';
import type { CollectionName, ProjectTypes, UntypedProject } from './project.js';

export { ApiError } from './api-error.js';

/** Where the service is and who asks. */
export interface ClientOptions extends ConnectionOptions, SessionOptions {}

/** A client without streams. */
export interface CoreClient<P> {
  collection<N extends CollectionName<P>>(name: N): CoreCollection<P, N>;
  /** Up to 100 writes, all carried out or none; answers what each has led to, in their order. */
  batch(build: (batch: Batch<P>) => void): Promise<BatchResult[]>;
  /** Whether the service answers. */
  readonly connection: ConnectionStatus;
  readonly auth: Auth<P>;
  readonly files: Files;
  readonly mail: Mailer;
}

/** A client of one project, without streams: a third smaller. */
export function createCoreClient<P extends ProjectTypes<P> = UntypedProject>(options: ClientOptions): CoreClient<P> {
  return openClient<P>(options).client;
}

/** The client, and what it sends by. */
export function openClient<P>(options: ClientOptions): {
  client: CoreClient<P>;
  connection: Connection;
  /** Other tabs see the same session. */
  isShared: boolean;
} {
  // A request of a server without a user has `token: undefined`: it must not find the session of another one.
  const isOwn = options.storage !== undefined || 'token' in options;
  const { storage, isShared } = isOwn ? { storage: options.storage, isShared: false } : findStorage();
  const connection = openConnection(options);
  const { auth, batch, files, mail } = openAuth<P>(connection, { ...options, storage });
  const client: CoreClient<P> = {
    collection: (name) => openCollection(connection, name) as never,
    batch: (build) => batch.send(build as never),
    connection: connection.status,
    auth,
    files,
    mail,
  };
  return { client, connection, isShared };
}
