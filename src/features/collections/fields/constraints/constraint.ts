/** What a value must be beyond its type (writes.md 2), each under its name in the declaration of a field or an item. */
export interface Constraints {
  /** Characters of a text. */
  minLength?: number;
  maxLength?: number;
  /** Of a text; searched for anywhere in it unless it says ^ and $. */
  pattern?: string;
  format?: TextFormat;
  /** White space around a text is taken off before it is checked and stored. */
  trim?: boolean;
  /** A text is stored in lower case. */
  lowercase?: boolean;
  /** Of a Number, or of a Date as ISO 8601 text or `now`, the moment of the write. */
  min?: number | string;
  max?: number | string;
  integer?: boolean;
  enum?: (string | number)[];
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  /** Of a Ref: a visible document of its collection must have the id when it is stored (writes.md 3). */
  check?: boolean;
  /** Of a Ref: what becomes of documents that refer to one that is trashed or removed; `check` then holds too. */
  onDelete?: OnDelete;
  /** Of a Ref: fields in which the referred document holds what this one does; `check` then holds too. */
  same?: string[];
}

export const ON_DELETE = ['restrict', 'unset', 'trash', 'remove'] as const;
export type OnDelete = (typeof ON_DELETE)[number];

export type ConstraintName = keyof Constraints;

export const TEXT_FORMATS = ['email', 'url', 'uuid'] as const;
export type TextFormat = (typeof TEXT_FORMATS)[number];

/** In a Date's `min` and `max`: the moment of the write. */
export const NOW = 'now';
