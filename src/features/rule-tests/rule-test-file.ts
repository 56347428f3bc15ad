import { compileCheck } from '../../platform/schema/check-schema.js';
import {
  anyOf,
  ANYTHING,
  arrayOf,
  claimed,
  object,
  oneOf,
  orNull,
  TEXT,
  type Schema,
  type TypeOf,
} from '../../platform/schema/schema.js';

const RULE_TEST_FORMAT = 'bsvc-rules/1';

/** An anonymous caller. */
export const ANYONE_NAME = 'anyone';

const mapOf = <T>(values: Schema<T>): Schema<Record<string, T>> =>
  claimed({ type: 'object', additionalProperties: values });
const FIELDS = mapOf(ANYTHING);

/** A request and its expected outcome: one of read, create, update and delete. */
const EXPECTATION = object({
  /** A user, several of them, or `anyone`: an anonymous caller. */
  as: anyOf(TEXT, arrayOf(TEXT, { minItems: 1 })),
  /** A collection to list, or a document to get. */
  'read?': TEXT,
  /** Filters of a list as a query string. */
  'filter?': TEXT,
  /** The collection that a document is stored in. */
  'create?': TEXT,
  /** The document that is changed. */
  'update?': TEXT,
  /** The document that is trashed. */
  'delete?': TEXT,
  /** The fields of what is stored or changed. */
  'with?': FIELDS,
  /** The documents of a list, by their names, in any order. */
  'sees?': arrayOf(TEXT),
  /** Fields that are in no document of the answer, although it has one at least. */
  'without?': arrayOf(TEXT, { minItems: 1 }),
  /** `ok`, or the code of the refusal; `ok` where nothing is said. */
  'answers?': TEXT,
});
export type Expectation = TypeOf<typeof EXPECTATION>;

const FILE = object({
  format: oneOf(RULE_TEST_FORMAT),
  /** The project of the declaration, where that has several. */
  'project?': TEXT,
  /** The declaration, beside this file: `bsvc.yaml` where nothing is said. */
  'apply?': TEXT,
  /** Users by name, each with the fields that they have besides an address. */
  users: mapOf(orNull(FIELDS)),
  /** By collection: documents by name. `@name` in a text is the id of that user or document. */
  documents: mapOf(mapOf(FIELDS)),
  expect: arrayOf(EXPECTATION, { minItems: 1, maxItems: 1000 }),
});
export type RuleTestFile = TypeOf<typeof FILE>;

/** Checks the form of a file of rule tests; 400 names the first place that does not fit. */
export const readRuleTests = compileCheck<RuleTestFile>(FILE);
