import { ok, parameter, route } from '../../http/routes/route.js';
import { changes, orNull, object, TEXT } from '../../platform/schema/schema.js';
import { projectOwner } from '../access/operator-access.js';
import { presentCollection } from '../collections/present-collection.js';
import { completeRules } from '../collections/rules/check-rules.js';
import { COLLECTION } from '../collections/schema/describe-collection.js';
import { setRules } from '../collections/set-rules.js';

/** Rules as a body gives them. */
export const RULE_TEXTS = changes({ read: TEXT, create: TEXT, update: TEXT, delete: TEXT, updateTo: TEXT });

/** Rules of a collection, for operators (rules.md 1). */
export const setRulesRoute = route('PUT /api/projects/:projectId/collections/:collection/rules', {
  id: 'setRules',
  summary: 'Say who may read, create, update and delete what with a publishable key',
  description:
    'Replaces all rules, and row-level security; a rule that is not given is `nobody`, null switches them off.',
  access: projectOwner('collection rules', { asksPassword: ({ rules }) => rules === null }),
  query: { confirm: parameter('Name of the project: agrees to what lets somebody do more than before', TEXT) },
  body: object({ rules: orNull(RULE_TEXTS) }),
  example: { rules: { read: 'anyone' } },
  answers: ok(COLLECTION, 'Rules updated'),
  refuses: {
    400: ['INVALID_RULES', 'INVALID_RULE', 'INVALID_QUERY'],
    409: ['CONFIRMATION_REQUIRED', 'RULE_MISFITS'],
  },
  async handle({ app, project, params, query, body: { rules } }) {
    const agreed = query.confirm === project.name;
    const next = completeRules(rules);
    return presentCollection(await setRules(app, project._id, params.collection, next, { agreed }));
  },
});
