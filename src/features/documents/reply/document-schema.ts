import { claimed, FLAG, ID, MOMENT, orNull, type Schema } from '../../../platform/schema/schema.js';
import type { PresentedDocument } from './present-document.js';

const SYSTEM_FIELDS = { _id: ID, isDeleted: FLAG, deletedAt: orNull(MOMENT), createdAt: MOMENT, updatedAt: MOMENT };

/** Codes of routes that answer with documents: too many large replies are under way. */
export const NO_ROOM = { 503: ['BUSY'] };

/** A document as writes answer it: the service's own fields, and whatever else it has. */
export const DOCUMENT: Schema<PresentedDocument> = claimed({
  title: 'Document',
  description: 'The fields of the collection, and those that the service keeps.',
  type: 'object',
  required: Object.keys(SYSTEM_FIELDS),
  properties: SYSTEM_FIELDS,
});

/** A document as reads answer it, where `fields` and `meta` may leave out what the service keeps. */
export const SHOWN_DOCUMENT: Schema<PresentedDocument> = claimed({
  title: 'ShownDocument',
  description: 'A document, or the part of it that was asked for; Ref fields named by `populate` are documents.',
  type: 'object',
  required: ['_id'],
  properties: SYSTEM_FIELDS,
});
