import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, pathTo } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { say } from '../../parts/basics.js';
import { Commands, quote } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Icon } from '../../parts/icon.js';
import { PageHead } from '../../parts/page-head.js';
import { List } from '../../parts/table.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange, me, projects } from '../../session.js';
import { OperatorDrawer } from './operator-drawer.js';

type OperatorAccount = ApiSchemas['OperatorAccount'];

const BASE = pathTo('/api/admin/operators');
const NEW = ':new';

/** Those who look after the service, and which projects each sees. */
export function Operators() {
  const list = useLoad(BASE);
  const open = place.value.query.get('open');
  const stored = list.data?.items.find(({ id }) => id === open);
  const [removing, setRemoving] = useState<OperatorAccount | null>(null);
  const close = (): void => goTo(linkHere({ open: null }));
  const nameOf = (id: string): string => projects.value.find((project) => project.id === id)?.name ?? id;
  const isOwn = ({ email }: OperatorAccount): boolean => email === me.value?.email;
  return (
    <>
      <PageHead title="Operators" count={list.data?.items.length}>
        {mayChange.value && (
          <a class="button primary" href={linkHere({ open: NEW })}>
            <Icon name="plus" />
            Add an operator
          </a>
        )}
      </PageHead>
      <List
        label="Operators"
        of={list}
        keyOf={({ id }) => id}
        empty="No operators."
        columns={[
          {
            name: 'E-mail',
            show: (operator) =>
              mayChange.value && !isOwn(operator) ? (
                <a class="opens" href={linkHere({ open: operator.id })}>
                  {operator.email}
                </a>
              ) : (
                `${operator.email}${isOwn(operator) ? ' (you)' : ''}`
              ),
          },
          { name: 'Role', show: ({ role }) => <span class={role === 'owner' ? 'tag plain' : 'tag'}>{role}</span> },
          { name: 'Projects', show: (operator) => operator.projects?.map(nameOf).join(', ') ?? 'all' },
          { name: 'Added', show: ({ createdAt }) => moment(createdAt) },
          {
            name: 'Remove',
            show: (operator) =>
              mayChange.value && !isOwn(operator) ? (
                <button
                  class="small danger"
                  aria-label={`Remove ${operator.email}`}
                  onClick={() => setRemoving(operator)}
                >
                  Remove…
                </button>
              ) : null,
          },
        ]}
      />
      <Commands cli="bsvc operator list" path={BASE} />
      {open && mayChange.value && (open === NEW || stored) && (
        <OperatorDrawer
          key={open}
          base={BASE}
          stored={stored ?? null}
          onClose={close}
          onSaved={() => {
            list.reload();
            close();
          }}
        />
      )}
      {removing && (
        <RemoveOperator
          operator={removing}
          onClose={() => setRemoving(null)}
          onDone={() => {
            setRemoving(null);
            list.reload();
          }}
        />
      )}
    </>
  );
}

function RemoveOperator({
  operator: { id, email },
  onClose,
  onDone,
}: {
  operator: OperatorAccount;
  onClose: () => void;
  onDone: () => void;
}) {
  const path = below(BASE, '/{operator}', { operator: id });
  return (
    <Confirm
      title="Remove the operator"
      text="Every session and token ends at once."
      name={email}
      asksPassword
      action="Remove the operator"
      commands={{ cli: `bsvc operator remove ${quote(email)}`, method: 'DELETE', path }}
      onClose={onClose}
      onConfirm={async () => {
        await call('DELETE', path);
        say('The operator is removed');
        onDone();
      }}
    />
  );
}
