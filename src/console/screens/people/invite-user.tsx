import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address, type DataOf } from '../../api-paths.js';
import { moment } from '../../format.js';
import { useLoad, type Loaded } from '../../load.js';
import { attempt, say, useAction } from '../../parts/basics.js';
import { ofProject, quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Choice, Field, listIn } from '../../parts/form.js';
import { List } from '../../parts/table.js';
import { linkTo, place } from '../../routes.js';

type Invites = '/api/projects/{projectId}/invites';

/** Invites by mail, and shows which invitations are open. */
export function InviteUser({
  project,
  onClose,
}: {
  project: Address<'/api/projects/{projectId}'>;
  onClose: () => void;
}) {
  const path = below(project, '/invites');
  const invites = useLoad(path);
  const { data } = useLoad(project);
  const redirects = data?.signIn.redirects ?? [];
  const [email, setEmail] = useState('');
  const [roles, setRoles] = useState('');
  const [chosen, setChosen] = useState('');
  const redirect = chosen || (redirects[0] ?? '');
  const wanted = listIn(roles);
  const body = { email, redirect, ...(wanted.length > 0 && { roles: wanted }) };
  const [busy, send, error] = useAction(async () => {
    await call('POST', path, { body });
    say(`An invitation to ${email} is on its way`);
    setEmail('');
    invites.reload();
  });
  return (
    <DrawerForm
      title="Invite"
      action="Send the invitation"
      isDirty={email !== ''}
      mayGo={email !== '' && redirect !== ''}
      busy={busy}
      error={error}
      commands={{
        cli: `bsvc user invite ${quote(email || 'grace@example.com')} ${ofProject()}${wanted.map((role) => ` --role ${quote(role)}`).join('')}`,
        method: 'POST',
        path,
        body,
      }}
      onSubmit={() => void send()}
      onClose={onClose}
    >
      {data && redirects.length === 0 && (
        <p class="trouble">
          No page is set that mails may link to.{' '}
          <a href={linkTo(['p', place.value.parts[1] ?? '', 'sign-in'])}>Add one under “Sign-in”</a>
        </p>
      )}
      <Field label="E-mail" type="email" required autocomplete="off" value={email} onText={setEmail} />
      <Field
        label="Roles"
        autocomplete="off"
        value={roles}
        hint="Between commas; the user gets them by accepting."
        onText={setRoles}
      />
      <Choice
        label="Page that the mail links to"
        value={redirect}
        choices={redirects.map((each) => [each, each] as const)}
        onChoose={setChosen}
      />
      <OpenInvites path={path} of={invites} />
    </DrawerForm>
  );
}

function OpenInvites({ path, of }: { path: Address<Invites>; of: Loaded<DataOf<'GET', Invites>> }) {
  const withdraw = (id: string): Promise<void> =>
    attempt(async () => {
      await call('DELETE', below(path, '/{invite}', { invite: id }));
      of.reload();
      return 'The invitation is withdrawn';
    });
  return (
    <>
      <h3>Open invitations</h3>
      <List
        label="Open invitations"
        of={of}
        keyOf={({ id }) => id}
        empty="None."
        columns={[
          { name: 'E-mail', show: (invite) => invite.email },
          { name: 'Roles', show: (invite) => invite.roles.join(', ') },
          { name: 'Until', show: ({ expiresAt }) => moment(expiresAt) },
          {
            name: 'Withdraw',
            show: (invite) => (
              <button
                type="button"
                class="small"
                aria-label={`Withdraw the invitation of ${invite.email}`}
                onClick={() => void withdraw(invite.id)}
              >
                Withdraw
              </button>
            ),
          },
        ]}
      />
    </>
  );
}
