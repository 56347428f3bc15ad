/** The type of a value, and what it has to keep to (rest-api.md 2.3, 2.4). */
export interface FieldShape {
  type: string;
  /** Ref: the collection it points into. */
  ref?: string;
  /** Object: its declared fields. */
  fields?: CollectionField[];
  /** Array: what every item is. */
  items?: FieldShape;
  enum?: (string | number)[];
  min?: number | string;
  max?: number | string;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  format?: string;
  integer?: boolean;
}

/** A declared field as the operators' API shows it. */
export interface CollectionField extends FieldShape {
  name: string;
  required?: boolean;
  unique?: boolean;
  default?: string | number | boolean;
  stamp?: string;
  fixed?: boolean;
  hidden?: boolean;
  protected?: boolean;
  public?: boolean;
}

/** Rules as texts; what is not there is `nobody`. */
export interface RuleTexts {
  read?: string;
  create?: string;
  update?: string;
  delete?: string;
  updateTo?: string;
}

/** A collection as the operators' API shows it. */
export interface Collection {
  name: string;
  mode: string;
  fields: CollectionField[];
  indexes: string[];
  uniques?: string[][];
  rls: { enabled: boolean; mode?: string; ownerField?: string };
  rules?: RuleTexts | null;
  size?: { documents: number; bytes: number };
  updatedAt: string;
}

export const USERS = 'users';
