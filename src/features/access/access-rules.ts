import type { Document } from 'bson';
import type { App } from '../../app.js';
import { AppError, forbidden, unauthenticated } from '../../errors.js';
import { loadMatchers, type Exists } from '../../platform/database/database.js';
import type { Collection } from '../collections/collection.js';
import { isServerOnly, rulesOf, type RuleName } from '../collections/rules/collection-rules.js';
import { fieldRulesOf } from '../collections/rules/field-rules.js';
import { admitsAnyone, admitsNobody, documentPaths, type Rule } from '../collections/rules/rule.js';
import { USERS } from '../collections/users-collection.js';
import type { Caller } from './caller.js';
import { peekAttributes, readAttributes } from './rules/caller-attributes.js';
import { answerQuestions, openWriterSets, type AskSet, type SetAnswers, type WriterSets } from './rules/access-sets.js';
import {
  admitsNothing,
  compileRule,
  filterOf,
  listQuestions,
  NOTHING,
  shapeOf,
  type CallerAttributes,
  type CompiledRule,
  type RuleFacts,
  type SetQuestion,
} from './rules/compile-rule.js';
import { fieldAccessOf, fieldVisibilityOf, type FieldAccess, type FieldVisibility } from './rules/field-visibility.js';
import { holdsIn, ruleAdmits } from './rules/holds-in.js';
import { boundValuesOf, placeholderDocument, storedPath } from './rules/bound-values.js';

/**
 * Restricts a query to what the caller may see; null = everything. Always AND-ed in front of the client's own filter,
 * never merged with it.
 */
export type AccessFilter = Document | null;

/** What is read of a collection. */
export interface ReadScope {
  /** With the trashed documents among them that the caller may delete. */
  trash?: boolean;
  /** What the documents in question all meet; asked for once it is known that the caller may ask at all. */
  conditions?: () => readonly Document[];
  /** No set may be older than the call, as it may be on a MongoDB. */
  fresh?: boolean;
}

/** What a caller may read. */
export interface ReadAccess {
  filter: AccessFilter;
  /** The same with the names of the caller's sets, whose values change while a cursor lives. */
  shape: AccessFilter;
  /** The sets that were asked about; null where none was. */
  asked: AskedSets | null;
}

/** The rule `read`, what is known of the caller and what had to be asked about their sets. */
export interface AskedSets {
  rule: Rule;
  facts: RuleFacts;
  questions: readonly SetQuestion[];
  /** By keyOfQuestion. */
  answers: SetAnswers;
}

/** The filter of readAccess. */
export async function readFilter(
  app: App,
  collection: Collection,
  caller: Caller,
  scope?: ReadScope,
): Promise<AccessFilter> {
  return (await readAccess(app, collection, caller, scope)).filter;
}

const ALL: ReadAccess = { filter: null, shape: null, asked: null };

/**
 * The filter of readAccess for the documents outside of the trash, where the caller's token says all that it depends
 * on; undefined where something has to be asked for it. Throws as readAccess does.
 */
export function peekFilter(
  collection: Collection,
  caller: Caller,
  conditions?: ReadScope['conditions'],
): AccessFilter | undefined {
  if (caller.key.type === 'secret') return null;
  requireReader(collection, caller);
  const { read } = rulesOf(collection);
  if (admitsAnyone(read)) return null;
  if (read.sets.length > 0) return undefined;
  const attributes = peekAttributes(caller, read.attributes);
  if (attributes === undefined) return undefined;
  return filterOf(compileRule(read, factsOf(collection, [read], attributes, conditions)));
}

/** What is known of the caller, and of the documents in question. */
function factsOf(
  collection: Collection,
  rules: readonly Rule[],
  attributes: CallerAttributes,
  conditions: ReadScope['conditions'],
): RuleFacts {
  const paths = new Set(collection.rules && conditions ? rules.flatMap(({ singlePaths }) => singlePaths) : []);
  return { attributes, ...(conditions && paths.size > 0 && { boundValues: boundValuesOf(conditions(), paths) }) };
}

/**
 * Which documents of a collection the caller may read (rest-api.md 5, rules.md 3). 401 AUTH_REQUIRED or the token's own
 * fault if an anonymous caller can read nothing, 403 READ_BLOCKED if no caller can, 403 TOO_MANY_MEMBERSHIPS.
 */
export async function readAccess(
  app: App,
  collection: Collection,
  caller: Caller,
  { trash = false, conditions, fresh = false }: ReadScope = {},
): Promise<ReadAccess> {
  if (caller.key.type === 'secret') return ALL;
  requireReader(collection, caller);
  const rules = rulesOf(collection);
  if (admitsAnyone(rules.read) && !(trash && collection.rules)) return ALL;
  const asked = trash && collection.rules ? [rules.read, rules.delete] : [rules.read];
  const [read, remove] = asked as [Rule, Rule?];
  const attributes = await readAttributes(app, caller, [...new Set(asked.flatMap((rule) => rule.attributes))]);
  const facts = factsOf(collection, asked, attributes, conditions);
  const questions = listQuestions(asked, facts);
  const isAsked = questions.length > 0;
  const answers = isAsked ? await answerQuestions(app, caller, attributes, questions, { fresh }) : undefined;
  const known = { ...facts, ...(answers && { answers }) };
  const readable = filterOf(compileRule(read, known));
  const filter = remove ? withoutForeignTrash(readable, compileRule(remove, known)) : readable;
  const shape = asked.some(({ sets }) => sets.length > 0) ? shapeOf(asked, attributes) : filter;
  return { filter, shape, asked: answers ? { rule: read, facts, questions, answers } : null };
}

/** Throws what readAccess has to say of the caller, whatever is asked for. */
export function requireReader(collection: Collection, caller: Caller): void {
  if (caller.key.type === 'secret') return;
  const { read } = rulesOf(collection);
  if (admitsNobody(read)) throw readBlocked(collection);
  requireKnown(read, caller);
}

/** Which documents of a collection an end user may refer to, or change. */
export interface Admitted {
  /** The fields of a document that are looked at. */
  fields: ReadonlySet<string>;
  /** Null stands for a missing document, which takes as many queries. */
  admits: (document: Document | null, exists: Exists) => boolean;
}

/**
 * Opens which documents of a collection an end user may refer to, those that the user may read, for a decision inside
 * of a write. Null for all of them. 401 for a token that is no longer good.
 */
export async function openReferable(app: App, collection: Collection, caller: Caller): Promise<Admitted | null> {
  const { read } = rulesOf(collection);
  // Users are shown to each other by their public fields, whatever the collection's routes answer.
  if (collection.name === USERS || admitsAnyone(read)) return null;
  try {
    requireReader(collection, caller);
  } catch (error) {
    const isClosed = error instanceof AppError && (error.code === 'READ_BLOCKED' || error.code === 'AUTH_REQUIRED');
    if (isClosed) return { fields: new Set(['isDeleted']), admits: () => false };
    throw error;
  }
  return openAdmitted(app, caller, [[read]]);
}

/** Which documents of a collection an end user may read, and change or delete too, for a decision inside of a write. */
export function openChangeable(app: App, collection: Collection, caller: Caller): Promise<Admitted> {
  const { read, update, delete: remove } = rulesOf(collection);
  return openAdmitted(app, caller, [[read], [update, remove]]);
}

/** Those that a rule of each list admits. */
async function openAdmitted(app: App, caller: Caller, each: readonly (readonly Rule[])[]): Promise<Admitted> {
  const rules = each.flat();
  const paths = documentPaths(rules).map((path) => storedPath(path).split('.')[0]!);
  const attributes = await readAttributes(app, caller, [...new Set(rules.flatMap((rule) => rule.attributes))]);
  const sets = await openWriterSets(
    app,
    caller,
    attributes,
    rules.flatMap((rule) => rule.sets),
  );
  // Always the same one: a decision that is made again asks what it has asked before.
  const absent = placeholderDocument(rules.flatMap(({ singlePaths }) => singlePaths));
  return {
    fields: new Set(['isDeleted', ...paths]),
    admits(document, exists) {
      const ask = sets(exists);
      const isAdmitted = (rule: Rule): boolean => ruleAdmits(rule, attributes, document ?? absent, ask);
      return each.every((some) => some.some(isAdmitted)) && document?.isDeleted === false;
    },
  };
}

/**
 * The documents of a collection that an end user may read, and change or delete too; null for all of them, NOTHING for
 * none. Asked about those that meet `conditions`. 403 TOO_MANY_MEMBERSHIPS.
 */
export async function changeableFilter(
  app: App,
  collection: Collection,
  caller: Caller,
  conditions: readonly Document[],
): Promise<AccessFilter> {
  const { read: reads, update, delete: remove } = rulesOf(collection);
  const rules = [reads, update, remove];
  const attributes = await readAttributes(app, caller, [...new Set(rules.flatMap((rule) => rule.attributes))]);
  const facts = {
    attributes,
    boundValues: boundValuesOf(conditions, new Set(rules.flatMap(({ singlePaths }) => singlePaths))),
  };
  const answers = await answerQuestions(app, caller, attributes, listQuestions(rules, facts), { fresh: true });
  const [read, ...others] = rules.map((rule) => compileRule(rule, { ...facts, answers })) as [CompiledRule];
  const changing = others.filter((rule) => !admitsNothing(rule)).map(filterOf);
  if (admitsNothing(read) || changing.length === 0) return NOTHING;
  const filters = [filterOf(read), changing.includes(null) ? null : { $or: changing }].filter((part) => part !== null);
  return filters.length > 0 ? { $and: filters } : null;
}

/** 403 READ_BLOCKED: no caller with a publishable key reads anything of the collection. */
export function readBlocked({ name, ...access }: Collection): Error {
  const opens = isServerOnly(access)
    ? `To let every key read it: bsvc collection rls ${name} --public, or choose who with --read`
    : `To choose who may read it: bsvc collection rls ${name} --read <rule>`;
  const message = 'Nothing of this collection is readable with a publishable key';
  return forbidden('READ_BLOCKED', `${message}. ${opens}`);
}

/** The trash is readable with the right to delete. */
function withoutForeignTrash(read: AccessFilter, remove: CompiledRule): AccessFilter {
  const mayDelete = filterOf(remove);
  if (mayDelete === null) return read;
  const active = { isDeleted: false };
  const shown = admitsNothing(remove) ? active : { $or: [active, mayDelete] };
  return read ? { $and: [read, shown] } : shown;
}

/**
 * 401 if a rule admits nothing without a signed-in user. A bad token counts as none where the rule asks for no
 * caller (decisions.md 2).
 */
function requireKnown(rule: Rule, caller: Caller): void {
  if (!rule.asksCaller || caller.bearer.state === 'user') return;
  if (caller.bearer.state === 'invalid') requireUserId(caller);
  if (admitsNothing(compileRule(rule, { attributes: null }))) requireUserId(caller);
}

/** True if the caller sees all of the documents that it reads. */
export function seesAll({ fields }: Pick<Collection, 'fields'>, caller: Caller): boolean {
  return caller.key.type === 'secret' || fieldRulesOf(fields).every(({ read }) => admitsAnyone(read));
}

/**
 * What the caller does not see of the documents that it reads (rules.md 7); null where it sees all of them. 401 for a
 * bad token where that depends on the caller.
 */
export async function findVisibility(
  app: App,
  collection: Pick<Collection, 'fields'>,
  caller: Caller,
): Promise<FieldVisibility | null> {
  if (seesAll(collection, caller)) return null;
  const rules = fieldRulesOf(collection.fields).filter(({ read }) => !admitsAnyone(read));
  if (caller.bearer.state === 'invalid' && rules.some(({ read }) => read.asksCaller)) requireUserId(caller);
  const names = new Set(rules.flatMap(({ read }) => read.attributes));
  return fieldVisibilityOf(rules, await readAttributes(app, caller, [...names]), await loadMatchers());
}

/** True where attributes of the caller's account decide about what it sees of fields. */
export function visibilityNeedsAccount({ fields }: Pick<Collection, 'fields'>): boolean {
  return fieldRulesOf(fields).some(({ read }) => read.attributes.length > 0);
}

/** Whose rights apply when a write references documents or deletes referenced ones: a user's, or the project's. */
export interface Referrer {
  caller: Caller;
}

/** The end user or anonymous caller who writes with a publishable key. */
export interface EndWriter extends Referrer {
  /** Null for an anonymous caller. */
  userId: string | null;
  /** The network of the request. */
  network: string;
  /** Where row-level security says whose a document is; null under rules. */
  ownerField: string | null;
  /** 401 if a rule admits nothing to an anonymous caller. */
  requireKnown: (name: RuleName) => void;
  /** What the fields' own rules come to; null where they have none. */
  fields: FieldAccess | null;
  /** A rule names a set: it is decided inside of the write. */
  hasSets: boolean;
  /** Whether the rule admits a document at hand, where `ask` answers what it asks of the writer's sets. */
  admits: (name: RuleName, document: Document, ask: AskSet) => boolean;
  openSets: () => WriterSets | Promise<WriterSets>;
}

/** The writer of a document; null = the project itself with its secret key, which stands above all rules. */
export type Writer = EndWriter | null;

/**
 * Settles who writes to a collection. 403 WRITE_BLOCKED for one that is public or for the secret key only, 401 without
 * a user under row-level security; what rules say of the very write is the write's to ask.
 */
export async function requireWriter(app: App, collection: Collection, caller: Caller): Promise<Writer> {
  if (caller.key.type === 'secret') return null;
  const { rls } = collection;
  if (!rls && (!collection.rules || isServerOnly(collection))) {
    throw forbidden(
      'WRITE_BLOCKED',
      'With a publishable key you can write only where row-level security or rules allow it. Use the secret key on a server',
    );
  }
  if (rls) requireUserId(caller);
  const rules = rulesOf(collection);
  const all = Object.values<Rule>(rules);
  const fields = fieldRulesOf(collection.fields);
  const ofFields = fields.flatMap(({ read, write }) => [read, write]);
  if (caller.bearer.state === 'invalid' && ofFields.some(({ asksCaller }) => asksCaller)) requireUserId(caller);
  const names = new Set([...all, ...ofFields].flatMap((rule) => rule.attributes));
  const attributes = await readAttributes(app, caller, [...names]);
  const { bearer } = caller;
  const sets = [...all, ...fields.map(({ write }) => write)].flatMap((rule) => rule.sets);
  const compiled = new Map<Rule, CompiledRule>();
  return {
    caller,
    userId: bearer.state === 'user' ? bearer.userId : null,
    network: caller.network ?? '',
    ownerField: rls?.ownerField ?? null,
    requireKnown: (name) => requireKnown(rules[name], caller),
    fields: fields.length > 0 ? fieldAccessOf(fields, attributes, await loadMatchers()) : null,
    hasSets: sets.length > 0,
    openSets: () => openWriterSets(app, caller, attributes, sets),
    admits(name, document, ask) {
      const rule = rules[name];
      if (rule.sets.length > 0) return ruleAdmits(rule, attributes, document, ask);
      let own = compiled.get(rule);
      if (!own) compiled.set(rule, (own = compileRule(rule, { attributes })));
      return holdsIn(own, document);
    },
  };
}

/** The end user's id; 401 with the code that says what is wrong with the token. */
export function requireUserId(caller: Caller): string {
  const { bearer } = caller;
  if (bearer.state === 'user') return bearer.userId;
  if (bearer.state === 'absent') {
    throw unauthenticated('AUTH_REQUIRED', 'Sign in first: this needs Authorization: Bearer <access token>');
  }
  if (bearer.code === 'MFA_ENROLMENT_REQUIRED') {
    throw forbidden(
      'MFA_ENROLMENT_REQUIRED',
      'This project requires MFA. Set it up first (POST mfa/totp), or sign in with it',
    );
  }
  throw bearer.code === 'TOKEN_EXPIRED'
    ? unauthenticated('TOKEN_EXPIRED', 'The access token has expired: refresh it')
    : unauthenticated('TOKEN_INVALID', 'The access token is not valid');
}
