import { decodeDocument } from '../../codec/decode.js';
import { BsonFormatError } from '../../codec/elements.js';
import { type Doc, RawDocument, setField } from '../../codec/document.js';
import { encodeDocument } from '../../codec/encode.js';
import { hasSecondId } from '../../codec/raw.js';
import { requireDatabaseName } from '../../commands/command.js';
import { badValue, CODES, EngineError } from '../../errors.js';

/** A message of the protocol: 16 bytes of head, then what the operation code says. */
export interface Message {
  readonly requestId: number;
  readonly opCode: number;
  readonly body: Buffer;
}

/** A command as it came. */
export interface Request {
  readonly body: Doc;
  readonly db: string;
  readonly wantsReply: boolean;
}

const HEAD_BYTES = 16;
const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

const CHECKSUM_PRESENT = 1;
const MORE_TO_COME = 2;
/** Bits that a server must understand before it may go on. */
const REQUIRED_FLAGS = 0xffff;

/** The list of an insert, whose documents are stored as they are. */
const STORED_LIST = 'documents';

/** Reads a command; throws EngineError (17, 73, 352, 40571) or BsonFormatError for what is no valid message. */
export function readRequest(message: Message): Request {
  if (message.opCode === OP_MSG) return readMsg(message);
  if (message.opCode === OP_QUERY) return readQuery(message);
  throw new EngineError(CODES.ProtocolError, `operation code ${message.opCode} is not supported`);
}

function readMsg({ body }: Message): Request {
  if (body.length < 5) throw new BsonFormatError('the message is too short');
  const flags = body.readUInt32LE(0);
  if ((flags & REQUIRED_FLAGS & ~(CHECKSUM_PRESENT | MORE_TO_COME)) !== 0) {
    throw new EngineError(CODES.ProtocolError, 'the message has unknown required flags');
  }
  const end = body.length - ((flags & CHECKSUM_PRESENT) === 0 ? 0 : 4);
  let at = 4;
  let command: Doc | null = null;
  const lists: { name: string; documents: unknown[] }[] = [];
  while (at < end) {
    const kind = body[at++];
    if (kind === 0) {
      const size = readSize(body, at, end);
      if (command !== null) throw new BsonFormatError('the message has two bodies');
      command = decodeDocument(body.subarray(at, at + size));
      at += size;
    } else if (kind === 1) {
      const size = readSize(body, at, end);
      lists.push(readList(body.subarray(at, at + size)));
      at += size;
    } else {
      throw new BsonFormatError(`unknown section kind ${String(kind)}`);
    }
  }
  if (command === null) throw new BsonFormatError('the message has no body');
  for (const { name, documents } of lists) {
    if (Object.hasOwn(command, name)) throw new BsonFormatError(`the message has the list '${name}' twice`);
    setField(command, name, documents);
  }
  const db = command['$db'];
  if (typeof db !== 'string') throw new EngineError(40571, 'OP_MSG requests require a $db argument');
  requireDatabaseName(db);
  return { body: command, db, wantsReply: (flags & MORE_TO_COME) === 0 };
}

function readSize(body: Buffer, at: number, end: number): number {
  if (at + 5 > end) throw new BsonFormatError('the section is too short');
  const size = body.readInt32LE(at);
  if (size < 5 || at + size > end) throw new BsonFormatError('the length of a section is wrong');
  return size;
}

/** A list of documents beside the body: length, name, documents. */
function readList(section: Buffer): { name: string; documents: unknown[] } {
  const nameEnd = section.indexOf(0, 4);
  if (nameEnd < 0) throw new BsonFormatError('the name of a list runs over');
  const name = section.toString('utf8', 4, nameEnd);
  const documents: unknown[] = [];
  let at = nameEnd + 1;
  while (at < section.length) {
    const size = readSize(section, at, section.length);
    const bytes = section.subarray(at, at + size);
    // Decoded also where the bytes are stored as they are, because nobody could ever read them if they were malformed.
    const doc = decodeDocument(bytes);
    if (name === STORED_LIST) {
      if (hasSecondId(bytes)) throw badValue("can't have multiple _id fields");
      documents.push(new RawDocument(bytes));
    } else {
      documents.push(doc);
    }
    at += size;
  }
  return { name, documents };
}

function readQuery({ body }: Message): Request {
  const nameEnd = body.indexOf(0, 4);
  if (nameEnd < 0) throw new BsonFormatError('the collection name runs over');
  const collection = body.toString('utf8', 4, nameEnd);
  const command = decodeDocument(body.subarray(nameEnd + 9));
  const [name] = Object.keys(command);
  if (!collection.endsWith('.$cmd') || name === undefined || !/^(?:ismaster|hello)$/i.test(name)) {
    throw new EngineError(
      CODES.UnsupportedOpQueryCommand,
      'Unsupported OP_QUERY command: only the first handshake may use it',
    );
  }
  return { body: command, db: collection.slice(0, -'.$cmd'.length), wantsReply: true };
}

let lastRequestId = 0;

/** The bytes of a reply to the request with that id. */
export function encodeReply(responseTo: number, reply: Doc, legacy: boolean): Buffer[] {
  const document = encodeDocument(reply);
  const front = Buffer.alloc(legacy ? HEAD_BYTES + 20 : HEAD_BYTES + 5);
  front.writeInt32LE(front.length + document.length, 0);
  lastRequestId = (lastRequestId + 1) | 0;
  front.writeInt32LE(lastRequestId, 4);
  front.writeInt32LE(responseTo, 8);
  front.writeInt32LE(legacy ? OP_REPLY : OP_MSG, 12);
  // The old reply: flags, cursor id, position, and that one document follows.
  if (legacy) front.writeInt32LE(1, HEAD_BYTES + 16);
  return [front, document];
}

/** True for operation codes whose answers have the old form. */
export function isLegacy(opCode: number): boolean {
  return opCode !== OP_MSG;
}

/** Cuts the byte stream of a connection into messages. */
export class Framing {
  private waiting: Buffer[] = [];
  private length = 0;

  constructor(private readonly maxBytes: number) {}

  /** The messages that are complete with these bytes; throws when one is longer than allowed. */
  add(chunk: Buffer): Message[] {
    this.waiting.push(chunk);
    this.length += chunk.length;
    const messages: Message[] = [];
    for (;;) {
      if (this.length < 4) return messages;
      let bytes = this.waiting[0]!;
      if (bytes.length < 4) {
        bytes = Buffer.concat(this.waiting);
        this.waiting = [bytes];
      }
      const size = bytes.readInt32LE(0);
      if (size < HEAD_BYTES || size > this.maxBytes) {
        throw new BsonFormatError(`a message of ${size} bytes is not allowed`);
      }
      if (this.length < size) return messages;
      if (bytes.length < size) bytes = Buffer.concat(this.waiting);
      messages.push({
        requestId: bytes.readInt32LE(4),
        opCode: bytes.readInt32LE(12),
        // A copy: the documents of an insert outlive the buffer of the socket.
        body: Buffer.from(bytes.subarray(HEAD_BYTES, size)),
      });
      this.waiting = [bytes.subarray(size), ...(bytes === this.waiting[0] ? this.waiting.slice(1) : [])].filter(
        (part) => part.length > 0,
      );
      this.length -= size;
    }
  }
}
