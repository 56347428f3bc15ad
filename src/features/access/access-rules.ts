import type { Document } from 'bson';
import type { App } from '../../app.js';
import { forbidden, unauthenticated } from '../../errors.js';
import { loadMatchers, type Matcher } from '../../platform/database/database.js';
import type { Collection } from '../collections/collection.js';
import { rulesOf, type ParsedRules, type RuleName } from '../collections/rules/collection-rules.js';
import { admitsNobody, type Rule } from '../collections/rules/rule.js';
import type { Caller } from './caller.js';
import { readAttributes } from './rules/caller-attributes.js';
import {
  admitsNothing,
  compileRule,
  filterOf,
  type CallerAttributes,
  type CompiledRule,
} from './rules/compile-rule.js';

/**
 * Restricts a query to what the caller may see; null = everything. Always AND-ed in front of the client's own filter,
 * never merged with it.
 */
export type AccessFilter = Document | null;

/**
 * Which documents of a collection the caller may read (rest-api.md 5, rules.md 3); with `trash` those among them that
 * were trashed and that the caller may delete. 401 AUTH_REQUIRED or the token's own fault where nothing can be shown to
 * somebody unknown, 403 READ_BLOCKED where nothing is shown to anybody. A promise only when it takes time.
 */
export function readFilter(
  app: App,
  collection: Collection,
  caller: Caller,
  trash = false,
): AccessFilter | Promise<AccessFilter> {
  if (caller.key.type === 'secret') return null;
  const rules = rulesOf(collection);
  if (collection.rules && admitsNobody(rules.read)) {
    throw forbidden('READ_BLOCKED', 'Nothing of this collection is readable with a publishable key');
  }
  const withTrash = trash && collection.rules !== undefined && collection.rules !== null;
  const names = withTrash ? [...rules.read.attributes, ...rules.delete.attributes] : rules.read.attributes;
  const filter = (attributes: CallerAttributes): AccessFilter => {
    const read = filterOf(settleRule(rules.read, caller, attributes));
    return withTrash ? withoutForeignTrash(read, compileRule(rules.delete, attributes)) : read;
  };
  const attributes = readAttributes(app, caller, names);
  return attributes instanceof Promise ? attributes.then(filter) : filter(attributes);
}

/** The trash is for those who may fill it. */
function withoutForeignTrash(read: AccessFilter, remove: CompiledRule): AccessFilter {
  const mayDelete = filterOf(remove);
  if (mayDelete === null) return read;
  const active = { isDeleted: false };
  const shown = admitsNothing(remove) ? active : { $or: [active, mayDelete] };
  return read ? { $and: [read, shown] } : shown;
}

/**
 * A rule for the caller, 401 where it admits nothing because nobody is signed in. A bad token counts as none where the
 * rule asks for no caller (decisions.md 2).
 */
function settleRule(rule: Rule, caller: Caller, attributes: CallerAttributes): CompiledRule {
  if (rule.asksCaller && caller.bearer.state === 'invalid') requireUserId(caller);
  const compiled = compileRule(rule, attributes);
  if (rule.asksCaller && attributes === null && admitsNothing(compiled)) requireUserId(caller);
  return compiled;
}

/** The end user, or somebody who is not signed in, who writes with a publishable key. */
export interface EndWriter {
  /** Null for somebody who is not signed in. */
  userId: string | null;
  /** Where row-level security says whose a document is; null under rules. */
  ownerField: string | null;
  /** What a rule comes to for the writer; 401 where it admits nothing to somebody unknown. */
  compiled: (name: RuleName) => CompiledRule;
  openMatcher: (filter: Document) => Matcher;
}

/** The writer of a document; null = the project itself with its secret key, which stands above all rules. */
export type Writer = EndWriter | null;

/**
 * Settles who writes to a collection. 403 WRITE_BLOCKED without row-level security and rules, 401 without a user under
 * row-level security; what rules say of the very write is the write's to ask.
 */
export async function requireWriter(app: App, collection: Collection, caller: Caller): Promise<Writer> {
  if (caller.key.type === 'secret') return null;
  const { rls } = collection;
  if (!rls && !collection.rules) {
    throw forbidden(
      'WRITE_BLOCKED',
      'A publishable key may write only to collections with row-level security: use the secret key on a server',
    );
  }
  if (rls) requireUserId(caller);
  const rules = rulesOf(collection);
  const names = new Set(Object.values<Rule>(rules).flatMap(({ attributes }) => attributes));
  const [attributes, openMatcher] = [await readAttributes(app, caller, [...names]), await loadMatchers()];
  const { bearer } = caller;
  return {
    userId: bearer.state === 'user' ? bearer.userId : null,
    ownerField: rls?.ownerField ?? null,
    compiled: compileOnce(rules, caller, attributes),
    openMatcher,
  };
}

function compileOnce(rules: ParsedRules, caller: Caller, attributes: CallerAttributes): EndWriter['compiled'] {
  const known = new Map<Rule, CompiledRule>();
  return (name) => {
    const rule = rules[name];
    let compiled = known.get(rule);
    if (!compiled) known.set(rule, (compiled = settleRule(rule, caller, attributes)));
    return compiled;
  };
}

/** The end user's id; 401 with the code that says what is wrong with the token. */
export function requireUserId(caller: Caller): string {
  const { bearer } = caller;
  if (bearer.state === 'user') return bearer.userId;
  if (bearer.state === 'absent') {
    throw unauthenticated('AUTH_REQUIRED', 'Sign in first: this needs Authorization: Bearer <access token>');
  }
  throw bearer.code === 'TOKEN_EXPIRED'
    ? unauthenticated('TOKEN_EXPIRED', 'The access token has expired: refresh it')
    : unauthenticated('TOKEN_INVALID', 'The access token is not valid');
}
