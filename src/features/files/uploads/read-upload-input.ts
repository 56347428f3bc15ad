import { invalid } from '../../../errors.js';
import { isContentType } from '../content-type.js';

export interface UploadRequest {
  filename: string;
  contentType: string;
  size: number;
}

export interface UploadConfirmation {
  filePath: string;
  size: number;
}

const MAX_NAME_CHARACTERS = 1024;

/** The body of upload-request; 400 for the first field that is missing or of the wrong kind. */
export function readUploadRequest(body: Record<string, unknown>): UploadRequest {
  const filename = readText(body, 'filename');
  const contentType = readText(body, 'contentType');
  if (!isContentType(contentType))
    throw refuse('contentType', 'format', 'contentType must be a media type such as image/png');
  return { filename, contentType, size: readSize(body) };
}

export function readUploadConfirmation(body: Record<string, unknown>): UploadConfirmation {
  return { filePath: readText(body, 'filePath'), size: readSize(body) };
}

/** The `path` of a delete request. */
export function readPath(body: Record<string, unknown>): string {
  return readText(body, 'path');
}

function readText(body: Record<string, unknown>, field: string): string {
  const value = Object.hasOwn(body, field) ? body[field] : undefined;
  if (value === undefined || value === null || value === '') throw refuse(field, 'required', `${field} is required`);
  if (typeof value !== 'string') throw refuse(field, 'type', `${field} must be a string`);
  if (value.length > MAX_NAME_CHARACTERS) throw refuse(field, 'length', `${field} is too long`);
  return value;
}

function readSize(body: Record<string, unknown>): number {
  const value = Object.hasOwn(body, 'size') ? body.size : undefined;
  if (value === undefined || value === null) throw refuse('size', 'required', 'size is required');
  if (!Number.isSafeInteger(value) || (value as number) < 0)
    throw refuse('size', 'type', 'size must be a whole number of bytes');
  return value as number;
}

function refuse(field: string, rule: string, message: string): Error {
  return invalid('VALIDATION_FAILED', message, { details: [{ field, rule, message }] });
}
