import type { FoundChange } from '../../changes/change-log.js';
import { encodeChange, type FeedQuery } from '../feed-query.js';

const CRLF = '\r\n';

/** Events as bytes, made once for all whom they are sent to. */
export class EventBytes {
  /** As one chunk of an HTTP/1.1 body. */
  readonly chunk: Buffer;
  readonly #start: number;

  /** A text in `latin1` stands for bytes that are UTF-8 already. */
  constructor(text: string) {
    const size = text.length.toString(16) + CRLF;
    this.#start = size.length;
    this.chunk = Buffer.from(size + text + CRLF, 'latin1');
  }

  /** As a part of a body that has no chunks, that of HTTP/1.0. */
  get plain(): Buffer {
    return this.chunk.subarray(this.#start, -CRLF.length);
  }

  /** Bytes of the events alone. */
  get length(): number {
    return this.chunk.length - this.#start - CRLF.length;
  }
}

/** A change that many may be shown; what it looks like to those who ask for the same fields is kept. */
export interface SharedChange extends FoundChange {
  encoded: Map<string, string>;
}

/** How a subscription's events are written. */
export interface EventForm {
  /** The position of the subscription in its request. */
  n: number;
  /** Each event has its cursor as `id:` too, by which an EventSource resumes. */
  hasIds: boolean;
}

/** The same for those whose events are written alike. */
export function keyOfForm({ n, hasIds }: EventForm): string {
  return `${n} ${hasIds}`;
}

/**
 * Changes as events, written once for all who are told the same. All but the last bear the cursor from before the
 * batch: a follower that is cut off in the middle gets all of it again.
 */
export class Batch {
  readonly #made = new Map<string, EventBytes>();

  constructor(
    private readonly changes: readonly FoundChange[],
    private readonly query: FeedQuery,
    private readonly cursors: { from: () => string; to: string },
    private readonly isCaughtUp: boolean,
  ) {}

  bytes(form: EventForm): EventBytes {
    const key = keyOfForm(form);
    let bytes = this.#made.get(key);
    // The documents in it are UTF-8 already, a character a byte.
    if (!bytes) this.#made.set(key, (bytes = new EventBytes(this.#write(form))));
    return bytes;
  }

  #write(form: EventForm): string {
    const { to } = this.cursors;
    const last = this.changes.length - 1;
    // Making a cursor costs more than writing a short event.
    const from = last > 0 ? this.cursors.from() : to;
    const events = this.changes.map((change, at) => {
      const cursor = at === last ? to : from;
      return writeEvent('change', form, `${this.#encode(change)},"cursor":"${cursor}"`, cursor);
    });
    return events.join('') + (this.isCaughtUp ? writeReady(form, to) : '');
  }

  #encode(change: FoundChange): string {
    const { encoded } = change as Partial<SharedChange>;
    if (!encoded || !change.document) return encodeChange(change, this.query);
    const { fields, meta, visibility } = this.query;
    const key = `${meta} ${fields?.join() ?? ''} ${visibility?.key ?? ''}`;
    let text = encoded.get(key);
    if (text === undefined) encoded.set(key, (text = encodeChange(change, this.query)));
    return text;
  }
}

/** The event that the client has what a list shows. */
export function writeReady(form: EventForm, cursor: string): string {
  return writeEvent('ready', form, `"cursor":"${cursor}"`, cursor);
}

/** The event that the client must forget what it has; by `cursor` it gets all that follows. */
export function writeReset(form: EventForm, cursor: string): string {
  return writeEvent('reset', form, '"code":"CURSOR_EXPIRED"', cursor);
}

function writeEvent(event: string, { n, hasIds }: EventForm, members: string, cursor: string): string {
  const id = hasIds ? `id: ${cursor}\n` : '';
  return `event: ${event}\n${id}data: {"n":${n},${members}}\n\n`;
}
