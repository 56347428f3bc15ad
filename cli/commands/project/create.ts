import { createProject } from '../../../src/features/projects/create-project.js';
import { PLAN_NAMES } from '../../../src/features/projects/project.js';
import { presentProject } from '../../../src/features/projects/present-project.js';
import { argument, choice, defineCommand, flag } from '../../shell/command.js';
import { presentFound } from '../../view/present-found.js';

export default defineCommand({
  details: 'The keys are shown only once: save them. "bsvc key create" creates more.',
  examples: ['bsvc project create shop', 'bsvc project create shop --plan pro --if-not-exists --json'],
  audited: true,
  parameters: {
    name: argument('name', 'name of the project'),
    plan: choice('--plan <plan>', 'limits to apply', PLAN_NAMES),
    ifNotExists: flag('--if-not-exists', 'do nothing if one of that name exists'),
  },
  async run(context, { name, plan, ifNotExists }) {
    const { project, keys, created } = await createProject(await context.app(), { name, plan, ifNotExists });
    const shown = presentProject(project);
    const unmet = plan === undefined || plan === project.plan ? [] : [`plan: ${project.plan} -> ${plan}`];
    return {
      json: { project: shown, keys, created, ...(!created && { unmet }) },
      quiet: shown.id,
      text: ({ paint }) =>
        keys
          ? [
              `Created project ${paint.bold(shown.name)} (${shown.id}).`,
              '',
              `  publishable key  ${keys.publishable}`,
              `  secret key       ${keys.secret}`,
              '',
              'The keys are shown this once. The publishable one may be in a browser, the secret one stays on servers.',
              `Next: bsvc collection add posts --project ${quoted(shown.name)} --field title:String!`,
            ].join('\n')
          : presentFound(
              `Project ${paint.bold(shown.name)} (${shown.id})`,
              unmet,
              `Change it with "bsvc project update ${quoted(shown.name)} --plan ${plan}".`,
            ),
    };
  },
});

function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name}'`;
}
