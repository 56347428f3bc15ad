import { erasePerson } from '../../../src/features/erasure/erase-person.js';
import { deleteUser } from '../../../src/features/users/accounts/delete-user.js';
import { nameOf } from '../../../src/features/users/user.js';
import { defineUserCommand } from '../../ask/choose-user.js';
import { flag, list } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { presentUserResult } from './present.js';

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
    'Documents of the user stay, except where a field says otherwise (onDelete). To only close the account use "bsvc user disable".',
    '--erase is for a person’s request to be forgotten. It permanently deletes the documents that the user owns (by the owner field of the collection, or a stamp), also in the trash, the files they uploaded and the logs of mails to them only.',
    'Documents that refer to the user (Ref(users)) are counted and stay, or go as the onDelete of their field says; --also names those that are the user’s. If it is interrupted, run it again.',
  ].join('\n'),
  examples: [
    'bsvc user delete ann@example.com --project shop',
    'bsvc user delete ann@example.com --project shop --yes',
    'bsvc user delete ann@example.com --erase --project shop --dry-run',
    'bsvc user delete ann@example.com --erase --project shop --also comments.author',
  ],
  audited: ({ dryRun }) => !dryRun,
  destroys: 'at times',
  parameters: {
    erase: flag('--erase', 'delete all data of the user, not only the account'),
    also: list('--also <collection.field>', 'with --erase: documents in which this field has the user (repeatable)'),
    dryRun: flag('--dry-run', 'with --erase: only report what there is'),
  },
  async run(context, { app, project, user, erase, also, dryRun }) {
    const name = nameOf(user);
    if (!erase) {
      if (also.length > 0 || dryRun) throw new UsageError('--also and --dry-run go with --erase.');
      await context.confirm({ what: `Deletes the account ${name}.`, name });
      await deleteUser(app, project, user);
      return presentUserResult(user, 'is deleted.');
    }
    if (!dryRun) await context.confirm({ what: `Permanently deletes all data of ${name}.`, name });
    const { removed, mentioned } = await erasePerson(app, project, user, { also, dryRun, stop: context.stop });
    const id = user._id.toHexString();
    return {
      json: { user: id, dryRun, removed, mentioned, remains: REMAINS },
      quiet: id,
      text: async (view) => {
        const rows = [
          ...removed.map(({ kind, place, count }) => [kind, place, count, dryRun ? 'would be deleted' : 'deleted']),
          ...mentioned.map(({ kind, place, count, onDelete }) => [kind, place, count, FATES[onDelete ?? 'none']]),
          ['account', name, 1, dryRun ? 'would be deleted' : 'deleted'],
        ];
        const lines = [await view.table(['what', 'where', 'number', 'state'], rows)];
        if (!dryRun) lines.push('Their name can still be in:', ...REMAINS.map((text) => `  ${text}`));
        return lines.join('\n');
      },
    };
  },
});
