import { presentInvite } from '../../../src/features/users/invites/invite.js';
import { sendInvite } from '../../../src/features/users/invites/send-invite.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { argument, defineCommand, list, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';

export default defineCommand({
  details:
    'Mails an invitation that is good for seven days, once, for a user whose confirmed address it is. Without --redirect it links to the first address of the project (project update --redirect). Sets of rules read memberships from documents: the server’s POST /api/userAuth/invites stores one with it.',
  examples: ['bsvc user invite grace@example.com --project shop --role editor'],
  audited: true,
  parameters: {
    project: projectOption,
    email: argument('<address>', 'e-mail address to invite'),
    roles: list('--role <role>', 'a role that the user gets (repeatable)'),
    redirect: option('--redirect <url>', 'page that the mail links to'),
  },
  async run(context, { project: named, email, roles, redirect }) {
    const { app, project } = await chooseProject(context, named);
    const page = redirect ?? project.signIn?.redirects?.[0];
    if (page === undefined) {
      throw new UsageError(`No page to link to: bsvc project update ${project.name} --redirect <url>.`);
    }
    const invite = presentInvite(await sendInvite(app, project, { email, redirect: page, roles }));
    return { json: invite, quiet: invite.id, text: () => `Invited ${invite.email} until ${invite.expiresAt}.` };
  },
});
