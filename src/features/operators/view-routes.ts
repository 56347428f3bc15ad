import { created, done, listOf, naming, ok, route, wholeList } from '../../http/routes/route.js';
import { ID, object, text } from '../../platform/schema/schema.js';
import { OPERATOR } from '../access/operator-access.js';
import { requireSeenProject } from '../access/require-operator.js';
import { requireOwnAccount } from './own-account.js';
import { listViews, removeView, saveView } from './saved-views.js';

const FIELDS = {
  projectId: ID,
  collection: text({ minLength: 1, maxLength: 100 }),
  name: text({ notBlank: true, oneLine: true, wellFormed: true, maxLength: 60 }),
  query: {
    ...text({ wellFormed: true, maxLength: 2_000 }),
    description: 'Of the console’s address: filters and order.',
  },
};
const VIEW = object({ id: ID, ...FIELDS }, 'SavedView');
const refuses = { 403: ['NOBODY_SIGNED_IN'] };

/** Views of collections that an operator keeps under names: nobody else sees them, and they are at every browser. */
export const VIEW_ROUTES = [
  route('GET /api/admin/me/views', {
    id: 'listOwnViews',
    summary: 'List the own saved views of all collections',
    access: OPERATOR,
    answers: ok(listOf(VIEW), 'Views'),
    refuses,
    async handle({ app, operator }) {
      return wholeList(await listViews(app, requireOwnAccount(operator).operator));
    },
  }),
  route('POST /api/admin/me/views', {
    id: 'saveOwnView',
    bodySize: 'small',
    summary: 'Save a view of a collection, in place of the own one of its name',
    description: 'Of one’s own views the 200 that were added last are kept.',
    access: OPERATOR,
    body: object(FIELDS, 'NewView'),
    example: {
      projectId: '66f0c0ffee0ddba11c0de001',
      collection: 'posts',
      name: 'Much read',
      query: 'views_gte=100&sort=-views',
    },
    answers: created(VIEW, 'View saved'),
    refuses: { ...refuses, 404: ['PROJECT_NOT_FOUND'] },
    async handle({ app, operator, body }) {
      const own = requireOwnAccount(operator).operator;
      await requireSeenProject(app, operator, body.projectId);
      return saveView(app, own, body);
    },
  }),
  route('DELETE /api/admin/me/views/:view', {
    id: 'removeOwnView',
    summary: 'Remove an own saved view',
    access: OPERATOR,
    params: { view: naming('Id of the view', 'VIEW_NOT_FOUND') },
    answers: done('View removed'),
    refuses,
    handle: ({ app, operator, params }) => removeView(app, requireOwnAccount(operator).operator, params.view),
  }),
];
