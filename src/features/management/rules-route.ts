import { clientSignal } from '../../http/requests/client-signal.js';
import type { Context } from 'koa';
import type { App } from '../../app.js';
import { listOf, naming, ok, parameter, route, type RouteList, wholeList } from '../../http/routes/route.js';
import {
  anyOf,
  arrayOf,
  changes,
  claimed,
  FLAG,
  ID,
  object,
  oneOf,
  orNull,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { requireProven } from '../access/require-operator.js';
import { type CollectionSettings, setRules } from '../collections/change-collection.js';
import type { Collection } from '../collections/collection.js';
import { wholeDeclaration } from '../collections/schema/collection-declaration.js';
import { listOpened } from '../collections/schema/merge-declaration.js';
import { presentCollection } from '../collections/collection-store.js';
import { completeRules } from '../collections/rules/check-rules.js';
import { COLLECTION } from '../collections/schema/describe-collection.js';
import { explainAccess } from '../documents/read/explain-access.js';
import { RULE_NAMES } from '../collections/rules/collection-rules.js';
import { presentFinding, reviewNewRules } from '../collections/rules/review-rules.js';
import { EXPOSED, listExposed } from './list-exposed.js';
import { VIEW_AS, findViewedUser, requireNamed } from './view-as.js';

/** Rules as a body gives them. */
export const RULE_TEXTS = changes({ read: TEXT, create: TEXT, update: TEXT, delete: TEXT, updateTo: TEXT });

/**
 * The new settings of a collection; 403 PASSWORD_REQUIRED if they grant more access and the console's
 * operator has not given the password again.
 */
export async function proveOpening<S extends Partial<CollectionSettings>>(
  app: App,
  ctx: Context,
  current: Collection,
  settings: S,
): Promise<S> {
  const opened = listOpened(wholeDeclaration(current), wholeDeclaration({ ...current, ...settings }));
  if (opened.length > 0) await requireProven(app, ctx);
  return settings;
}

/** Rules of a collection, for operators (rules.md 1). */
export const setRulesRoute = route('PUT /api/projects/:projectId/collections/:collection/rules', {
  id: 'setRules',
  summary: 'Set the access rules of a collection',
  description:
    'Replaces all rules, and row-level security. A missing rule means `nobody`. Null makes the collection public: all keys can read, the secret key can write.',
  access: projectOwner('collection rls', { asksPassword: ({ rules }) => rules === null }),
  query: { confirm: parameter('Name of the project, to confirm looser access', TEXT) },
  body: object({ rules: orNull(RULE_TEXTS) }),
  example: { rules: { read: 'anyone' } },
  answers: ok(COLLECTION, 'Rules updated'),
  errors: {
    400: ['INVALID_RULES', 'INVALID_RULE', 'INVALID_QUERY'],
    409: ['CONFIRMATION_REQUIRED', 'RULE_VIOLATIONS'],
  },
  async handle({ app, ctx, project, params, query, body: { rules } }) {
    const agreed = query.confirm === project.name;
    const prove = (): Promise<void> => requireProven(app, ctx);
    const next = completeRules(rules);
    return presentCollection(await setRules(app, project._id, params.collection, next, { agreed, prove }));
  },
});

/** `depends`: on the document. */
const VERDICT = oneOf('yes', 'no', 'depends');
const ANY_FILTER = claimed<object | null>({ type: ['object', 'null'] });

const EXPLAINED_RULE = object(
  {
    rule: oneOf(...RULE_NAMES),
    text: TEXT,
    admits: VERDICT,
    alternatives: arrayOf(
      object({ admits: VERDICT, conditions: arrayOf(object({ text: TEXT, admits: VERDICT })) }, 'ExplainedAlternative'),
    ),
    'filter?': ANY_FILTER,
    sets: arrayOf(object({ text: TEXT, values: WHOLE, ageMs: WHOLE })),
  },
  'ExplainedRule',
);

const EXPLAINED = object(
  {
    collection: TEXT,
    as: orNull(ID),
    rules: arrayOf(EXPLAINED_RULE),
    'list?': anyOf(object({ indexes: arrayOf(TEXT), examined: WHOLE, returned: WHOLE }), object({ refused: TEXT })),
    'document?': object({ id: ID, leftOut: arrayOf(TEXT) }),
  },
  'ExplainedAccess',
);

const REVIEW = object(
  {
    findings: arrayOf(
      object(
        {
          collection: TEXT,
          code: { ...TEXT, description: '`UNINDEXED` is a warning; all others are errors.' },
          message: TEXT,
          'details?': arrayOf(object({ field: TEXT, rule: TEXT, message: TEXT })),
        },
        'RuleFinding',
      ),
    ),
    loosens: {
      ...arrayOf(TEXT),
      description: 'What the rules loosen; empty if a rule is invalid.',
    },
  },
  'ReviewedRules',
);

/** Rules of a project, for operators who ask what they come to (rules.md 10). */
export const RULES_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/rules',
  tag: 'Collections',
  rate: 'operator',
  about: 'Collections of a project and who may do what in them.',
  params: { collection: naming('Name of the collection', 'COLLECTION_NOT_FOUND') },
  routes: [
    route('GET /api/projects/:projectId/rules', {
      id: 'listExposed',
      summary: 'List what the publishable key can access without sign-in',
      description: 'Each entry has the command that removes the access.',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(EXPOSED), 'Open to the publishable key'),
      async handle({ app, project }) {
        return wholeList(await listExposed(app, project));
      },
    }),
    route('POST /api/projects/:projectId/rules/:collection/check', {
      id: 'checkRules',
      summary: 'Check rules before you save them',
      description:
        'Changes nothing. `rules` as in `setRules`; default: the stored ones. Returns errors with their position (`details[0].rule` is a character offset), alternatives without an index, what the rules would loosen, and with `data`, whether stored documents match them.',
      access: PROJECT_OPERATOR,
      body: object({ 'rules?': orNull(RULE_TEXTS), 'data?': FLAG }),
      example: { rules: { read: 'anyone' }, data: true },
      answers: ok(REVIEW, 'Rules checked'),
      errors: { 403: ['USERS_BLOCKED'] },
      async handle({ app, project, params, body: { rules, data = false } }) {
        const collection = await requireNamed(app, project, params.collection);
        const asked = rules === undefined ? undefined : completeRules(rules);
        const { findings, loosens } = await reviewNewRules(app, collection, asked, { data });
        return { findings: findings.map(presentFinding), loosens };
      },
    }),
    route('GET /api/projects/:projectId/rules/:collection/explain', {
      id: 'explainRules',
      command: 'rules explain',
      summary: 'Explain the rules of a collection for a user',
      description:
        'Returns each rule with its conditions: `yes` or `no` for the user, or `depends` (on the document). With `id`, each is evaluated for that document. Without, the response has the remaining filter, and how a list is read.',
      access: PROJECT_OPERATOR,
      query: {
        as: VIEW_AS,
        id: parameter('The document to explain', TEXT),
        filter: parameter('Filters of a list as a query string, such as `board=66f0c0ffee0ddba11c0de001`', TEXT),
      },
      answers: ok(EXPLAINED, 'Rules explained'),
      errors: {
        400: ['INVALID_QUERY', 'INVALID_ID', 'FIELD_NOT_READABLE'],
        403: ['USERS_BLOCKED', 'TOO_MANY_MEMBERSHIPS'],
        404: ['USER_NOT_FOUND', 'DOCUMENT_NOT_FOUND'],
      },
      async handle({ app, ctx, project, params, query: { as = 'anyone', id, filter } }) {
        const collection = await requireNamed(app, project, params.collection);
        const question = { as: await findViewedUser(app, project, as), id, filter };
        return explainAccess(app, project, collection, question, clientSignal(ctx));
      },
    }),
  ],
};
