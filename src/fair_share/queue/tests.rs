use proptest::prelude::*;

use super::*;

fn holder(account: u32, session: u64) -> Holder {
    Holder { account: Account::User(account), member: AccountMember::Session(session) }
}

/// Serves the next entry, and returns its holder.
fn serve(queue: &mut FairQueue<()>) -> Option<Holder> {
    queue.dequeue().map(|(ticket, ())| ticket.holder())
}

#[test]
fn the_account_that_holds_the_fewest_is_next_however_many_members_the_other_has() {
    let mut queue = FairQueue::default();
    for session in 0..3 {
        queue.add(holder(1, session));
        queue.enqueue(holder(1, session + 10), ());
    }
    queue.enqueue(holder(2, 0), ());
    queue.enqueue(holder(2, 0), ());
    let order: Vec<_> = std::iter::from_fn(|| serve(&mut queue)).map(|one| one.account).collect();
    let [one, two] = [1, 2].map(Account::User);
    assert_eq!(order, [two, two, one, one, one]);
}

#[test]
fn members_of_one_account_take_turns_and_a_newcomer_joins_at_the_end() {
    let mut queue = FairQueue::default();
    for session in [1, 1, 2, 2] {
        queue.enqueue(holder(1, session), ());
    }
    let first = serve(&mut queue).expect("one waits");
    queue.release(first);
    queue.enqueue(holder(1, 3), ());
    let mut order = vec![first];
    while let Some(next) = serve(&mut queue) {
        queue.release(next);
        order.push(next);
    }
    assert_eq!(order, [1, 2, 1, 3, 2].map(|session| holder(1, session)));
}

#[test]
fn the_holder_with_the_most_waiting_loses_its_newest() {
    let mut queue = FairQueue::default();
    queue.enqueue(holder(1, 1), "victim");
    for (session, value) in [(1, "a"), (2, "b"), (2, "c")] {
        queue.enqueue(holder(2, session), value);
    }
    assert_eq!(queue.shed().map(|(_, value)| value), Some("c"));
    assert_eq!(queue.n_waiting(), 3);
}

/// A model of the queue that examines all entries.
#[derive(Debug, Default)]
struct Model {
    held: Vec<Holder>,
    waiting: Vec<QueueTicket>,
}

impl Model {
    fn n_of_account(&self, holder: Holder) -> usize {
        self.held.iter().filter(|held| held.account == holder.account).count()
    }

    fn n_of_member(&self, holder: Holder) -> usize {
        self.held.iter().filter(|held| **held == holder).count()
    }

    /// Checks that no waiting entry had a better claim than `served`.
    fn check(&self, served: QueueTicket) -> Result<(), TestCaseError> {
        let holder = served.holder();
        for other in &self.waiting {
            let waiting = other.holder();
            prop_assert!(self.n_of_account(holder) <= self.n_of_account(waiting));
            if waiting.account == holder.account {
                prop_assert!(self.n_of_member(holder) <= self.n_of_member(waiting));
            }
            if waiting == holder {
                prop_assert!(served.number() <= other.number(), "one's own are served in order");
            }
        }
        Ok(())
    }
}

proptest! {
    /// In any order of events, the capacity is never exceeded, and no entry waits beside free
    /// capacity. The served holder holds no more than any waiting one, and nothing is lost or left
    /// over.
    #[test]
    fn capacity_goes_to_the_holder_with_the_fewest_and_nothing_is_lost(
        capacity in 1_usize..6,
        steps in prop::collection::vec((0_u8..5, 1_u32..4, 0_u64..3, any::<prop::sample::Index>()), 0..120),
    ) {
        let (mut queue, mut model) = (FairQueue::default(), Model::default());
        for (step, account, session, at) in steps {
            let asking = holder(account, session);
            match step {
                0 | 1 if model.waiting.is_empty() && model.held.len() < capacity => {
                    queue.add(asking);
                    model.held.push(asking);
                }
                0 | 1 => model.waiting.push(queue.enqueue(asking, ())),
                2 | 3 if !model.held.is_empty() => {
                    let held = model.held.remove(at.index(model.held.len()));
                    queue.release(held);
                }
                4 if !model.waiting.is_empty() => {
                    let ticket = model.waiting.remove(at.index(model.waiting.len()));
                    prop_assert!(queue.remove(ticket).is_some());
                    prop_assert!(queue.remove(ticket).is_none());
                }
                _ => {}
            }
            while model.held.len() < capacity
                && let Some((ticket, ())) = queue.dequeue()
            {
                model.check(ticket)?;
                model.waiting.retain(|waiting| *waiting != ticket);
                model.held.push(ticket.holder());
            }
            prop_assert!(model.held.len() <= capacity);
            prop_assert!(model.waiting.is_empty() || model.held.len() == capacity);
            prop_assert_eq!(queue.n_waiting(), model.waiting.len());
            prop_assert_eq!(queue.n_of_account(asking), model.n_of_account(asking));
            prop_assert_eq!(queue.n_of_member(asking), model.n_of_member(asking));
        }
        for ticket in model.waiting.drain(..) {
            prop_assert!(queue.remove(ticket).is_some());
        }
        model.held.drain(..).for_each(|held| queue.release(held));
        prop_assert_eq!((queue.accounts.len(), queue.members.len()), (0, 0), "nothing is left");
        prop_assert_eq!((queue.account_ranks.len(), queue.member_ranks.len()), (0, 0));
    }
}
