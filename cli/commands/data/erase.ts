import { erasePerson } from '../../../src/features/erasure/erase-person.js';
import { nameOf } from '../../../src/features/users/user.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { flag, list } from '../../shell/command.js';

/** Where data of a person can be after it was erased, for the person who answers for it. */
const REMAINS = [
  'backups made until now',
  'deliveries to webhooks and the log of changes, until they are removed (bsvc doctor, line "kept")',
  'the audit log, which names the user as they were named here',
  'what others wrote about them, and mails that they were sent',
];

/** What becomes of documents that refer to the user. */
const FATES = {
  none: 'stays: refers to the user',
  restrict: 'keeps the account: change it, or name it with --also',
  unset: 'stays without the reference',
  trash: 'goes to the trash',
  remove: 'is deleted',
} as const;

export default defineUserCommand({
  details: [
    'For a person’s request to be forgotten. The documents that the user owns (by the owner field of the collection, or a stamp) go for good, in the trash too; so do the files they uploaded, the logs of mails to them alone, and the account with its sessions.',
    'Documents that only refer to the user (Ref(users)) are counted and stay, or go as the onDelete of their field says; --also says which of them are the user’s. What was broken off goes on when it is run again.',
  ].join('\n'),
  examples: [
    'bsvc data erase ann@example.com --project shop --dry-run',
    'bsvc data erase ann@example.com --project shop --also comments.author',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    also: list('--also <collection.field>', 'documents in which this field has the user, too (repeatable)'),
    dryRun: flag('--dry-run', 'only report what there is'),
  },
  async run(context, { app, project, user, also, dryRun }) {
    if (!dryRun) {
      await context.confirm({ what: `Deletes all data of ${nameOf(user)} for good.`, name: nameOf(user) });
    }
    const { removed, mentioned } = await erasePerson(app, project, user, { also, dryRun, stop: context.stop });
    const id = user._id.toHexString();
    return {
      json: { user: id, dryRun, removed, mentioned, remains: REMAINS },
      quiet: id,
      text: async (view) => {
        const rows = [
          ...removed.map(({ kind, place, count }) => [kind, place, count, dryRun ? 'would be deleted' : 'deleted']),
          ...mentioned.map(({ kind, place, count, onDelete }) => [kind, place, count, FATES[onDelete ?? 'none']]),
          ['account', nameOf(user), 1, dryRun ? 'would be deleted' : 'deleted'],
        ];
        const lines = [await view.table(['what', 'where', 'number', 'state'], rows)];
        if (!dryRun) lines.push(`What can still name them:`, ...REMAINS.map((text) => `  ${text}`));
        return lines.join('\n');
      },
    };
  },
});
