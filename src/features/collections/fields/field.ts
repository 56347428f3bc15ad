import type { Constraints } from './constraints/constraint.js';

/** The seven types of rest-api.md 2.3. */
export const FIELD_TYPES = ['String', 'Number', 'Boolean', 'Date', 'Object', 'Array', 'Ref'] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

/** The type of a value without a name of its own: what an Array's items are. */
export interface FieldShape extends Constraints {
  type: FieldType;
  /** Ref: name of the collection it points into; absent = any. */
  ref?: string;
  /** Object: declared sub-fields; absent = any object. */
  fields?: Field[];
  /** Array: what every item must be; absent = anything. */
  items?: FieldShape;
}

/** A declared field of a collection, as stored in its record and as HTTP and command line show it. */
export interface Field extends FieldShape {
  name: string;
  required?: boolean;
  /** Unique among active documents that have the field. Top-level fields only. */
  unique?: boolean;
  /** A text that is found, sorted and unique without regard to case. Top-level String fields only. */
  nocase?: boolean;
  /** Stored where no value is given, so that the field is always there. Only of optional String, Number and Boolean. */
  default?: string | number | boolean;
  /** Filled in with the id of the signed-in user who stores the document. */
  stamp?: typeof OWN_USER;
  /** Set when the document is stored; end users cannot change it afterwards. */
  fixed?: boolean;
  /** The project's own code sets it before the document is stored (hooks.md 2). */
  hook?: boolean;
  /** The secret key alone sees and sets it. */
  hidden?: boolean;
  /** Read rule for publishable keys (rules.md 7); absent: visible to all readers of the document. */
  read?: string;
  /** Write rule for publishable keys; absent: writable by all writers of the document. */
  write?: string;
  /** `users` only: end users cannot set it. */
  protected?: boolean;
  /** `users` only: part of a public profile. */
  public?: boolean;
}

/** What a field says by name, behind an `@` in a field spec: yes, or with `read` and `write` a rule. */
export const NAMED_MARKS = ['nocase', 'fixed', 'hook', 'hidden', 'read', 'write', 'protected', 'public'] as const;

export const hasRule = (mark: string): mark is 'read' | 'write' => mark === 'read' || mark === 'write';

/** The one stamp that there is. */
export const OWN_USER = 'user.id' as const;

/** Fields that the service keeps itself; no schema may declare them. */
export const SYSTEM_FIELDS = ['_id', 'isDeleted', 'deletedAt', 'createdAt', 'updatedAt'] as const;

/** Top-level field in which the service keeps its own notes about a document; clients can neither name nor see it. */
export const HIDDEN_FIELD = '_bsvc';

/** The end user who stored a document, in collections with rules: it counts in their share of the quota. */
export const WRITTEN_BY = `${HIDDEN_FIELD}.by` as const;

/** Top-level names that no client gives a meaning to. */
export const KEPT_FIELDS: readonly string[] = [...SYSTEM_FIELDS, HIDDEN_FIELD];

/** Names that a prototype or the database's driver would take for something else, at any level. */
export const UNSAFE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype', '_bsontype']);
