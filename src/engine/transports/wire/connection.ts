import { once } from 'node:events';
import type { Socket } from 'node:net';
import { BsonFormatError } from '../../codec/elements.js';
import { BsonValueError } from '../../codec/encode.js';
import type { Doc } from '../../codec/document.js';
import type { Core } from '../../commands/command.js';
import { MAX_MESSAGE_BYTES } from '../../commands/handshake.js';
import { runCommand } from '../../commands/index.js';
import { codeNameOf, CODES, EngineError } from '../../errors.js';
import { StorageError } from '../../storage/storage-error.js';
import { encodeReply, Framing, isLegacy, type Message, readRequest } from './messages.js';

/** Called with errors that are no fault of the client. */
export type ReportError = (error: unknown) => void;

/** Answers the commands of one client, one after the other, until it goes. */
export async function serveConnection(core: Core, socket: Socket, report: ReportError): Promise<void> {
  const gone = new AbortController();
  socket.on('error', () => undefined);
  socket.on('close', () => {
    gone.abort();
  });
  socket.setNoDelay(true);
  const framing = new Framing(MAX_MESSAGE_BYTES);
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      for (const message of framing.add(chunk)) await answer(core, socket, message, gone.signal, report);
    }
  } catch {
    // Bytes that are no messages, or a connection that broke: there is nobody to tell.
  } finally {
    socket.destroy();
  }
}

async function answer(
  core: Core,
  socket: Socket,
  message: Message,
  signal: AbortSignal,
  report: ReportError,
): Promise<void> {
  const legacy = isLegacy(message.opCode);
  let wantsReply = true;
  let reply: Doc;
  try {
    const request = readRequest(message);
    ({ wantsReply } = request);
    reply = { ...(await runCommand({ core, db: request.db, signal }, request.body)), ok: 1 };
  } catch (error) {
    reply = presentError(error, report);
  }
  // Refusals too: an answer nobody waits for would be taken for that to the next command.
  if (!wantsReply) return;
  let parts: Buffer[];
  try {
    parts = encodeReply(message.requestId, reply, legacy);
  } catch (error) {
    parts = encodeReply(message.requestId, presentError(error, report), legacy);
  }
  if (signal.aborted) return;
  socket.cork();
  let flushed = true;
  for (const part of parts) flushed = socket.write(part);
  socket.uncork();
  if (!flushed) await once(socket, 'drain', { signal });
}

function presentError(error: unknown, report: ReportError): Doc {
  if (error instanceof EngineError) return present(error.code, error.message, error.extra);
  if (error instanceof BsonFormatError) return present(CODES.InvalidBSON, error.message);
  if (error instanceof BsonValueError) return present(CODES.BadValue, error.message);
  report(error);
  if (error instanceof StorageError && error.code === 'NO_SPACE') return present(CODES.OutOfDiskSpace, error.message);
  if (error instanceof StorageError && error.code === 'DAMAGED') {
    return present(CODES.DataCorruptionDetected, error.message);
  }
  return present(CODES.InternalError, 'internal error');
}

function present(code: number, errmsg: string, extra?: EngineError['extra']): Doc {
  return { ok: 0, errmsg, code, codeName: codeNameOf(code), ...extra };
}
