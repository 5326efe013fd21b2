"""Sentences of the embedded corpus: short English sentences written for voxveil.

Together they hold every phone of :mod:`voxveil.corpus.phones`. Plain words only: no digits,
no abbreviations, so that the transcript is what is spoken.
"""

from __future__ import annotations

__all__ = ["PRIVATE_SENTENCES", "PUBLIC_SENTENCES"]

_TEXT = """
The yellow bird sang above the garden wall
My cousin keeps three goats behind the barn
We should measure the beach before the tide returns
A thin boy threw both stones over the bridge
She asked for a large cup of ginger tea
Your uncle found the treasure under an oak
The judge chose to leave the town at dawn
Few people enjoy waiting in the cold rain
He poured warm milk into a blue bowl
Their voices echoed through the empty station
The usual road to the village is closed
Please bring me the other pair of shoes
Old boats lay rotting along the quiet shore
A sharp noise woke the children last night
Which of these keys opens the kitchen door
The painter mixed green and orange on a board
I thought the movie was rather funny
Nobody could explain the strange light
Those heavy boxes belong on the lower shelf
The young doctor drove home without a word
Fresh bread smells best early in the morning
He joined the choir because he loved to sing
The fox ran across the field and vanished
Put the zebra puzzle back in its box
Her vision of the future was quite clear
We watched the moon rise over the hills
The teacher wrote five words on the board
A cheap watch will often lose an hour
The ship sailed south with a cargo of wool
Both brothers work at the same bakery
Try to catch the ball with your left hand
The queen gave a measured and cautious reply
He used to play the violin at weddings
Large drops of water fell from the roof
This path leads down to the frozen lake
They voted to change the name of the school
A noisy engine passed below my window
The boy with the red hat is my nephew
Leave your wet boots outside the tent
She earns a good wage as a nurse
The garage was full of broken toys
Every house on the street looked alike
I would choose the smooth wooden chair
The thief was caught before he could escape
You may borrow this book for a week
The power failed just before midnight
His joke about the camel made us laugh
A narrow stream runs beside the church
The farmer shook the apple tree twice
She peeled an onion and began to cry
Our train leaves from the third platform
The puppy chewed a hole in the rug
Bright orange flowers grew near the fence
He counts his money every single day
They found a huge cave beyond the ridge
The soup needs pepper and a little salt
Why did you throw the letter away
A soft breeze moved the yellow curtain
The new bridge joins the two islands
Give each child a piece of the cake
The mouse hid among the bags of flour
We heard the thunder roll for an hour
The author signed a copy for my father
Ten thousand people came to the concert
His azure coat was made of pure silk
The dog barked at a passing bicycle
You should avoid the muddy side of the road
She took a photograph of the old tower
The cook chopped garlic for the sauce
A group of boys rushed into the shop
The river is too wide to swim across
Nothing gives me more pleasure than this view
He lost both gloves on the way to school
The king wore a crown of twisted gold
Please wash the dishes after you have eaten
The long march ended near the harbor
An owl watched us from a dead branch
They cooked fish over an open fire
The baby laughed when the puppet fell
I cannot recall the name of that song
The workers built a wall of rough stone
She bought a dozen eggs and some cheese
The visitor asked the way to the museum
A cloud of dust rose behind the car
The judge gave him seven days to decide
We keep the garden tools in a shed
The poor horse could hardly walk uphill
He has a good ear for foreign languages
Take the second turn after the church
The vase broke into a hundred pieces
My aunt sends a card every December
The shop sells leather belts and purses
Three tall pines stood beside the cabin
She wore a ring on her middle finger
The engineer checked each bolt by hand
Warm air and cold air make a storm
The children built a castle of wet sand
He finally told us the whole truth
A white goose followed the little girl
The lawyer read the letter out loud
We had to wait for the fog to clear
The boxer won because he moved faster
Few of my friends have seen the sea
The ancient temple stands on a low hill
Turn off the lamp when you leave
The choir sang while the snow kept falling
He asked the nurse for another pillow
A wooden bridge crosses the shallow creek
The mayor thanked the people who had helped
Sugar and lemon juice go well together
They walked in silence through the forest
The captain ordered his crew to turn north
Her new job begins on the first of June
The smell of coffee filled the kitchen
A loud cheer went up from the crowd
The cat slept on top of the warm oven
We measured the room with a piece of string
The postman leaves our mail by the gate
Do you prefer the blue or the brown one
The storm blew down a row of poplar trees
He thinks that the test was far too easy
Her brother makes furniture from old doors
The road bends sharply at the water mill
I usually drink a glass of orange juice
The guard unlocked the heavy iron gate
A huge black beetle crawled up the wall
The class will visit the zoo on Thursday
They sold the farm and moved to the coast
The clock in the hall strikes every hour
He spread butter and honey on his toast
Seven young swans swam behind their mother
The tailor cut the cloth with great care
My shoes are still wet from the walk
The pilot saw the lights of the airport
Someone left a bunch of roses at the door
The bus was late because of the snow
She answered the question in a low voice
The rough sea made the sailors ill
A good map would have saved us an hour
The chef tasted the sauce with a spoon
We planted beans along the garden fence
The old man told stories about the war
Ask the guide about the path to the falls
The curtain rose and the actors bowed
The wheel of the cart sank into the mud
He drew a circle around the wrong answer
The singer lost her voice on the tour
Their house has a view of the valley
The bell rang and the pupils ran outside
I need a larger box for these books
The lion yawned and closed its eyes
Most of the leaves had turned yellow
The gate was shut but the door was open
Her father taught music for many years
The wind pushed our kite toward the tower
He paid for the tickets with a gold coin
A row of candles burned on the table
The bank is next to the post office
She folded the paper into a small boat
The hunters followed the tracks of a bear
We shared the last slice of the pie
The nurse put a bandage on his thumb
A flock of geese flew over the marsh
The plumber fixed the leak in the bathroom
They dug a deep ditch around the camp
The lamp on my desk gives a soft light
He wore a thick scarf around his neck
The jury could not agree on a verdict
Our neighbors have a noisy green parrot
The ice on the pond is too thin to skate
She whispered the secret to her sister
The museum shows pictures from the desert
A pair of foxes lives in the old quarry
The weather should be better by noon
You can hear the ocean from this porch
The bishop blessed the new fishing boats
He earned his living as a street musician
The soldier polished his boots each evening
A heavy chain held the anchor in place
The mirror in the hallway has a crack
We chose a quiet corner of the cafe
The goat jumped over the low hedge
Her grandmother grew roses and thyme
The package arrived without a return address
He shut the window to keep out the noise
The bread was hard but the cheese was good
A young woman offered me her seat
The flames lit up the whole valley
They argued about the price of the horse
The carpenter measured the board once more
We reached the top just before sunset
The doctor advised him to give up sugar
A small leak will sink a great ship
The professor forgot where he parked
Four wheels and a board make a wagon
The beach was covered with smooth pebbles
She learned to read before she was five
The travelers shared their food with a stranger
He could not find the switch in the dark
The apples on that tree are still sour
A few drops of oil will stop the squeak
The picture hung above the fireplace
They chose the youngest player as captain
The train crossed the border during the night
I usually walk to the office with Joyce
The sheep gathered under the tall oak
A gray pony pulled the milk cart
The poem was about a voyage to the moon
She found the missing earring under the rug
The factory makes buttons from shells
We watched a hawk circle over the field
The boys put their coins into a jar
He described the house room by room
The water in the well is cool and clean
An early frost destroyed the grapes
The band played until the sun came up
Her decision to leave surprised the team
The dentist told him to brush with care
A large moth flew around the candle
The shepherd whistled and the dog came back
They carried the canoe around the rapids
The lecture was dull and far too long
He put the change into his coat pocket
The kitten chased its shadow on the wall
Their journey took them through three countries
The clerk gave us the wrong form
A cool drink would be a pleasure now
The roof of the shed is made of tin
She thanked the driver and hurried home
The monks copied books by hand
We found a good spot to watch the parade
The river froze for the first time in years
The joy on her face was plain to see
He chewed his pencil and looked at the ceiling
The village has one shop and two churches
A rusty nail went through the tire
The nephew of the duke was a fine cook
The orchestra tuned up as we sat down
She measured the flour with an old cup
The toy train ran under the chair
My boss wears the same tie every Monday
The wolf howled beyond the snowy ridge
Both of the windows face the courtyard
They usually buy their fish at the harbor
The boat rocked gently beside the pier
He joined his hands and closed his eyes
"""

_ALL = tuple(line for line in _TEXT.strip().splitlines())

#: Spoken by private speakers only, so that a recognizer has not learned them by heart.
PRIVATE_SENTENCES = _ALL[::4]

#: Spoken by everybody else.
PUBLIC_SENTENCES = tuple(line for index, line in enumerate(_ALL) if index % 4)
