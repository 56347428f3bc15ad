import { Transform, type Readable } from 'node:stream';
import busboy from 'busboy';
import type { Context } from 'koa';
import type { AppError } from '../../errors.js';
import { invalid, tooLarge } from '../../errors.js';

/** A file on its way in. */
export interface IncomingFile {
  filename: string;
  contentType: string;
  /** Ends only when the whole form has arrived and was well-formed; fails with the AppError to answer otherwise. */
  body: Readable;
}

export interface FormRules {
  /** Name of the one file field. */
  field: string;
  /** null = any size. */
  maxBytes: number | null;
  /** Names of text fields that belong to the file; 400 INVALID_BODY for one behind it, or sent twice. */
  texts?: readonly string[];
}

const LIMITS = { fields: 20, fieldSize: 64 * 1024, parts: 30, headerPairs: 100 };

/**
 * Streams the file of a multipart form through `take`, with the texts before it, and answers what it answers. 400
 * FILE_MISSING without that field, 400 INVALID_BODY for a form that is malformed, cut short or has two files, 413
 * FILE_TOO_LARGE as soon as one byte too many is read. Memory is that of a few chunks.
 */
export async function receiveFile<T>(
  ctx: Context,
  rules: FormRules,
  take: (file: IncomingFile, texts: ReadonlyMap<string, string>) => Promise<T>,
): Promise<T> {
  const { req } = ctx;
  const form = openForm(ctx);
  try {
    return await new Promise<T>((resolve, reject) => {
      let body: Transform | null = null;
      let formEnded: () => void = () => undefined;
      const whole = new Promise<void>((done) => (formEnded = done));
      // With a file under way, `take` fails by its body and cleans up before anything is answered.
      const fail = (error: Error): void => {
        if (body) body.destroy(error);
        else reject(error);
      };
      const texts = new Map<string, string>();
      form.on('field', (name, text) => {
        if (!rules.texts?.includes(name)) return;
        if (body) fail(invalid('INVALID_BODY', `Send the field "${name}" before the file`));
        else if (texts.has(name)) fail(invalid('INVALID_BODY', `Send the field "${name}" once`));
        else texts.set(name, text);
      });
      const typeOf = watchPartTypes(req, rules.field);
      form.on('file', (name, part, { filename, mimeType }) => {
        // A part ends with an error when the form does, which `form` reports.
        part.on('error', () => undefined);
        if (name !== rules.field) return void part.resume();
        if (body) return fail(invalid('INVALID_BODY', `Send one file only, in the field "${rules.field}"`));
        body = limitBody(rules.maxBytes, whole);
        body.on('error', () => undefined);
        part.pipe(body);
        take({ filename: filename ?? '', contentType: withParameters(mimeType, typeOf()), body }, texts).then(
          resolve,
          reject,
        );
      });
      // Not once: a form reports each thing that is wrong, and an unhandled error ends the process.
      form.on('error', () => fail(cutShort()));
      // Parts beyond the limits would be looked for, and dropped, to the end of the body.
      const tooMany = (): void => fail(body ? tooManyParts() : fileMissing(rules.field));
      form.once('partsLimit', tooMany).once('fieldsLimit', tooMany);
      form.once('close', () => {
        formEnded();
        if (!body) reject(fileMissing(rules.field));
      });
      req.once('close', () => {
        if (!req.complete) fail(cutShort());
      });
      req.pipe(form);
    });
  } catch (error) {
    req.unpipe(form);
    form.destroy();
    throw error;
  }
}

/** The type as it was sent, where busboy has read it as a type. */
function withParameters(mimeType: string, sent: string | null): string {
  return sent !== null && sent.toLowerCase().startsWith(`${mimeType};`) ? sent : mimeType;
}

/** More than the head of a part takes. */
const HEAD_BYTES = 16 * 1024;

/**
 * The type of the part in `field` with its parameters, which busboy drops: without `charset` browsers show UTF-8 as
 * another encoding. Reads along until it is asked, which has to be when the head of that part has just arrived; null
 * where the part says none.
 */
function watchPartTypes(req: Readable, field: string): () => string | null {
  let recent = Buffer.alloc(0);
  const read = (chunk: Buffer): void => {
    recent = Buffer.concat([recent.subarray(-HEAD_BYTES), chunk]);
  };
  req.on('data', read);
  return () => {
    req.off('data', read);
    const isField = new RegExp(`;[ \\t]*name="?${field}"?[ \\t]*(;|\\r|$)`, 'i');
    const heads = recent.toString('latin1').split('\r\n\r\n');
    recent = Buffer.alloc(0);
    const head = heads
      .map((text) => text.slice(Math.max(0, text.lastIndexOf('\r\n--'))))
      .find((text) => isField.test(text));
    return /(?:^|\r\n)content-type:[ \t]*([^\r\n]+?)[ \t]*(?:\r\n|$)/i.exec(head ?? '')?.[1] ?? null;
  };
}

function openForm(ctx: Context): busboy.Busboy {
  try {
    return busboy({ headers: ctx.req.headers, limits: LIMITS, defParamCharset: 'utf8' });
  } catch {
    throw invalid('FILE_MISSING', 'Send the file as multipart/form-data');
  }
}

/** Passes chunks on, refuses the first byte beyond the limit, and keeps its end back until `whole`. */
function limitBody(maxBytes: number | null, whole: Promise<void>): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (maxBytes !== null && bytes > maxBytes) done(fileTooLarge(maxBytes));
      else done(null, chunk);
    },
    flush(done) {
      void whole.then(() => done());
    },
  });
}

/** 413, with the limit. */
export function fileTooLarge(maxBytes: number): AppError {
  return tooLarge('FILE_TOO_LARGE', `The file is larger than ${maxBytes} bytes`);
}

function cutShort(): AppError {
  return invalid('INVALID_BODY', 'The multipart body is malformed or was cut short');
}

function tooManyParts(): AppError {
  return invalid(
    'INVALID_BODY',
    `The multipart body has too many parts: send the file and at most ${LIMITS.fields} fields`,
  );
}

function fileMissing(field: string): AppError {
  return invalid('FILE_MISSING', `No file was sent: put it into the multipart field "${field}"`);
}
