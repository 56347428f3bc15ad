import { explainAccess, type ExplainedAccess } from '../../../src/features/documents/read/explain-access.js';
import type { ExplainedRule, Admits } from '../../../src/features/access/rules/explain-rule.js';
import { findViewedUser } from '../../../src/features/management/view-as.js';
import { forbidden } from '../../../src/errors.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { viewAsOption } from '../../ask/choose-user.js';
import { filterOption } from '../../ask/filter-option.js';
import { defineCommand, option } from '../../shell/command.js';
import type { TextStyle } from '../../view/output.js';
import { countOf } from '../../view/present-amount.js';

export default defineCommand({
  details:
    'Explains the rules of a collection for a user: + true, - false, ? depends on the document. With --id, decides each for that document. Without, shows the remaining filter and how a list is read.',
  examples: [
    'bsvc rules explain cards --project board --as ada@example.com',
    'bsvc rules explain cards --project board --as anyone --id 66f0c0ffee0ddba11c0de001',
    'bsvc rules explain cards --project board --as ada@example.com --filter board=66f0c0ffee0ddba11c0de002',
  ],
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    as: viewAsOption,
    id: option('--id <document>', 'id of the document to decide about'),
    filters: filterOption(['as', 'id']),
  },
  async run(context, { as: named, id, filters, ...where }) {
    const name =
      named ?? (await context.ask.text('For whom (a user, or anyone):', 'Say for whom: --as <user>, or --as anyone'));
    const { app, project, collection } = await chooseCollection(context, where);
    if (collection.name === USERS) throw forbidden('USERS_BLOCKED', 'The users collection has no rules.');
    const as = await findViewedUser(app, project, name);
    const filter = new URLSearchParams(filters).toString();
    const explained = await explainAccess(app, project, collection, { as, id, filter }, context.stop);
    return {
      json: explained,
      quiet: explained.rules.map(({ rule, admits }) => `${rule} ${admits}`),
      text: (view) => presentExplained(view, explained),
    };
  },
});

const SIGNS: Record<Admits, string> = { yes: '+', no: '-', depends: '?' };

function presentExplained({ paint }: TextStyle, { rules, list, document }: ExplainedAccess): string {
  const lines = rules.flatMap((rule) => presentRule(rule, paint.bold));
  if (list && 'refused' in list) {
    lines.push('', `A list is refused: ${list.refused}`);
  } else if (list) {
    const by = list.indexes.length === 0 ? 'no index: every document is looked at' : `by ${list.indexes.join(', ')}`;
    lines.push('', `A list is read ${by}; ${list.examined} documents looked at for ${list.returned} of the page`);
  }
  if (document && document.leftOut.length > 0) lines.push('', `Left out: ${document.leftOut.join(', ')}`);
  return lines.join('\n');
}

function presentRule(
  { rule, text, admits, alternatives, filter, sets }: ExplainedRule,
  bold: (text: string) => string,
): string[] {
  const lines = [`${SIGNS[admits]} ${bold(rule)}: ${text}`];
  for (const { admits: verdict, conditions } of alternatives) {
    const [first, ...more] = conditions;
    if (!first || (alternatives.length === 1 && more.length === 0)) continue;
    lines.push(`  ${SIGNS[verdict]} ${conditions.map((each) => `${SIGNS[each.admits]} ${each.text}`).join('  and  ')}`);
  }
  if (filter) lines.push(`    filter ${JSON.stringify(filter)}`);
  for (const set of sets) {
    const age = set.ageMs > 0 ? `, read ${set.ageMs} ms ago` : '';
    lines.push(`    ${set.text}: ${countOf(set.values, 'value')}${age}`);
  }
  return lines;
}
